# Checks config.json, which somebody may have edited, before a node starts from it. A board forgets this module then.
import json

from .board import Log, watchdog

if 0:  # for type checkers
    from ..annotations import Any, Config, Feed

# ";WHAT NAME NAME ... ": a name of `arguments` begins with a dot. `make pages` writes it from h2t2_tools/fleet/config.py.
TABLE = (
    ";name device ;numbers remote_shape .prior ;0..1000000000 every_us samples .half_life ;0..3 remote_dtype ;object arguments "
    "budget offload_cost update sleep measured ;text ca cert key provision head app resolver broker ldl log_file ntp password "
    "records remote_media snapshot user wifi_bssid wifi_country wifi_hostname wifi_name wifi_password ;true|false awaitable "
    "patient untried report_decisions snapshot_ldl stream .ordered ;app|serial link ;list class_names wifi_address .costs "
    ".confusion ;0..255 event ;1..8 in_flight .bits ;0..65535 model_id ;adaptive|h2t2 policy ;1..65535 port ;1..1000000000 "
    "snapshot_every ;fresh|stop snapshot_mismatch ;ask|raise|pause when_down ;none|performance|powersave wifi_power_save "
    ";none|open|wpa_wpa2|wpa3|wpa2_wpa3 wifi_security ;10..3600000 deadline_ms ;0..60000 watchdog_ms ;0..86400000 every_ms "
    ";0..86400 telemetry_s ;5..3600 keep_alive ;0..8 context ;1..262144 remote_limit ;0..15 .normal ;1..4096 .window ;1..40 "
    ".features ;0..32768 .beta .confidence .delta_fn .delta_fp .miss_rate .rdl_fn .rdl_fp ;1..32768 .epsilon ;1..369098752 .eta"
    " ;anytime|epsilon .exploration ;all|explored .feedback ;0..268435455 .seed "
)
TYPES: "dict[str, Any]" = {"text": str, "true|false": bool, "object": dict, "list": list, "numbers": list}


def checked(path: str, log: Log) -> "Feed":
    """Check a file; set the path of the log, start the watchdog and return feed(). An exception is logged."""
    try:
        with open(path) as file:
            config = json.load(file)
        check(config, log)
    except Exception as error:
        log("%s cannot be used: %s; h2t2 flash writes it anew" % (path, error))
        raise
    log.path = config.get("log_file", "")
    return watchdog(config.get("watchdog_ms", 0))


def check(config: "Config", log: Log, inside: str = "") -> None:
    """Log entries that there are not. ValueError, which says what it wants, for one that does not fit. inside: "." or ""."""
    for name, value in config.items():
        at = TABLE.find(" %s%s " % (inside, name))
        row = TABLE.rfind(";", 0, at) + 1
        wants = TABLE[row : TABLE.find(" ", row)]
        if at < 0:
            log("config.json: there is no entry %s; it is ignored" % name)
            continue
        if wants == "name":
            wants = "1 to 64 bytes without / + #"
            fits = type(value) is str and 0 < len(value.encode()) <= 64 and not [c for c in value if c in "/+#\0"]
        elif wants in TYPES:
            fits = type(value) is TYPES[wants] and (wants != "numbers" or not [n for n in value if type(n) is not int])
        elif ".." in wants:
            low, high = wants.split("..")
            wants = "a whole number, " + wants
            fits = type(value) is int and int(low) <= value <= int(high)
        else:
            fits = value in wants.split("|")
        if not fits and not (inside and value is None):
            shown = "..." if "password" in name or name == "provision" else repr(value)[:40]
            raise ValueError("%s%s = %s: want %s" % (inside and "arguments.", name, shown, wants))
        if name == "arguments":
            check(value, log, ".")
