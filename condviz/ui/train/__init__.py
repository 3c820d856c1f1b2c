"""The Train tab: `tab` has its widgets and events, `view` what they show."""
