#include <stdio.h>

void show(const char *text) { fputs(text, stdout); }
