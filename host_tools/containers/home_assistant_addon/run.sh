#!/bin/sh
# Home Assistant's supervisor tells the broker's address and user.
set -eu
cd /config
config=$(python3 -c 'import json; print(json.load(open("/data/options.json"))["config"])')
python3 - <<'EOF'
import json
import os
import urllib.request

request = urllib.request.Request(
    "http://supervisor/services/mqtt", headers={"Authorization": "Bearer " + os.environ["SUPERVISOR_TOKEN"]}
)
with urllib.request.urlopen(request, timeout=10) as answer:
    mqtt = json.load(answer)["data"]
with open("/tmp/broker", "w") as file:
    file.write("%s://%s:%d\n%s\n" % ("mqtts" if mqtt["ssl"] else "mqtt", mqtt["host"], mqtt["port"], mqtt["username"]))
with open("/tmp/password", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    file.write(mqtt["password"])
EOF
exec h2t2 gate "$config" --broker "$(head -n 1 /tmp/broker)" --user "$(tail -n 1 /tmp/broker)" --password-file /tmp/password
