// What docs/from-c.md calls of PubSubClient.
#include <stdint.h>

class PubSubClient {
public:
    bool publish(const char *topic, const uint8_t *payload, unsigned int length);
};
