# From a device to its remote model: wire format, MQTT and serial links, TLS, Wi-Fi, what an offload costs.
