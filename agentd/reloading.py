"""Settings that a running daemon takes up; all others wait for a restart."""

__all__ = ["DESKTOP_FIELDS", "LINK_FIELDS", "RELOADABLE"]

# A new link is dialled, with the new credential; calls in flight are found again by id.
LINK_FIELDS = frozenset({"agent_token", "control_url"})
# Desktops that start afterwards have them.
DESKTOP_FIELDS = frozenset({
    "desktop_backend", "desktop_dpi", "desktop_height", "desktop_wallpaper", "desktop_width",
    "picture_format", "picture_max_bytes", "picture_quality", "portabledesktop",
    "settle_cap_ms", "settle_long_quiet_ms", "settle_patient", "settle_quiet_ms",
})  # fmt: skip
RELOADABLE = DESKTOP_FIELDS | LINK_FIELDS | {"log_level"}
