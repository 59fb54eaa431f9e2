"""`h2t2 convert`: a trained model becomes an int8 .tflite, a bundle for boards and a report. One kind of source a file."""
