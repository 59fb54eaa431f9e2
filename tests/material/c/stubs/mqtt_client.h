/* What docs/from-c.md calls of ESP-IDF's esp-mqtt. */
#include <stdbool.h>
#include <stdint.h>

typedef const char *esp_event_base_t;
typedef struct esp_mqtt_client *esp_mqtt_client_handle_t;
typedef struct esp_mqtt_event_t {
    char *data;
    int data_len;
} esp_mqtt_event_t;

int esp_mqtt_client_enqueue(
    esp_mqtt_client_handle_t client, const char *topic, const char *data, int size, int qos, int retain, bool store);
