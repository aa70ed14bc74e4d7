//! What time it is.

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};
use serde_json::{Value, json};

use super::{result, said, spec};
use crate::{
    config::react::Builtin,
    tools::{Tool, ToolCall, ToolSpec, ToolStream},
};

/// How many names are offered in place of one that there is not.
const OFFERED: usize = 3;

/// How much of a name is compared with those that there are; none is longer.
const COMPARED: usize = 64;

/// Tells the time in a zone; without one in UTC, since where the server stands says nothing about
/// where the person is. The zones are those that were compiled in.
pub(super) struct GetCurrentTime {
    spec: ToolSpec,
    zones: TimeZoneDatabase,
    now: fn() -> Timestamp,
}

impl Default for GetCurrentTime {
    fn default() -> Self {
        Self::at(Timestamp::now)
    }
}

impl GetCurrentTime {
    /// With a clock.
    pub(super) fn at(now: fn() -> Timestamp) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "IANA name of the time zone, e.g. Europe/Oslo. Default: UTC.",
                },
            },
        });
        let description = "Tells the current date, time and day of the week.";
        let spec = spec(Builtin::GetCurrentTime, description, parameters, true);
        Self { spec, zones: TimeZoneDatabase::bundled(), now }
    }

    fn tell(&self, zone: Option<&str>) -> Result<String, String> {
        let zone = match zone.map(str::trim).filter(|zone| !zone.is_empty()) {
            None => TimeZone::UTC,
            Some(name) => self.zones.get(name).map_err(|_| self.unknown(name))?,
        };
        let name = zone.iana_name().unwrap_or("UTC").to_owned();
        let time = (self.now)().to_zoned_datetime(zone);
        Ok(time.strftime(&format!("%Y-%m-%dT%H:%M:%S%:z ({name}, %A)")).to_string())
    }

    fn unknown(&self, name: &str) -> String {
        let asked: String = name.chars().take(COMPARED).collect();
        let asked = asked.to_lowercase().replace(' ', "_");
        let mut zones: Vec<(f64, String)> = self
            .zones
            .available()
            .map(|zone| (likeness(&asked, &zone.as_str().to_lowercase()), zone.to_string()))
            .collect();
        zones.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
        let near: Vec<String> = zones.into_iter().take(OFFERED).map(|(_, zone)| zone).collect();
        format!("There is no such time zone. Did you mean one of these: {}?", near.join(", "))
    }
}

/// How like a zone is to what was asked for, which may be its city alone.
fn likeness(asked: &str, zone: &str) -> f64 {
    let city = zone.rsplit('/').next().unwrap_or(zone);
    strsim::jaro_winkler(asked, zone).max(strsim::jaro_winkler(asked, city))
}

impl Tool for GetCurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        said(vec![result(self.tell(call.arguments.get("timezone").and_then(Value::as_str)))])
    }
}
