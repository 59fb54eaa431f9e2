/* What docs/from-c.md calls of Zephyr's MQTT. */
#include <stddef.h>
#include <stdint.h>

struct mqtt_client;
struct mqtt_evt;
struct mqtt_utf8 {
    const uint8_t *utf8;
    uint32_t size;
};
struct mqtt_topic {
    struct mqtt_utf8 topic;
    uint8_t qos;
};
struct mqtt_binstr {
    uint8_t *data;
    uint32_t len;
};
struct mqtt_publish_message {
    struct mqtt_topic topic;
    struct mqtt_binstr payload;
};
struct mqtt_publish_param {
    struct mqtt_publish_message message;
    uint16_t message_id;
    uint8_t dup_flag : 1;
    uint8_t retain_flag : 1;
};
int mqtt_publish(struct mqtt_client *client, const struct mqtt_publish_param *param);
int mqtt_read_publish_payload(struct mqtt_client *client, void *buffer, size_t length);
