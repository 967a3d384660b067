//! The load of a gateway's places at a server that decides itself, as the gateway reports it with each request.

use super::Lane;
use crate::request::Target;
use crate::telemetry::place_load::PlaceLoad;
use crate::time::Instant;

impl Lane {
    /// The load of this gateway's places at a plant, as of the last period, for the header of a request.
    pub fn place_load(&self, plant: usize) -> PlaceLoad {
        self.published.plants.get(plant).map_or(PlaceLoad::default(), |plant| plant.place_loads.own.get())
    }

    /// Notes what a gateway has reported to the server's process with a request.
    pub fn hear_place_load(&self, now: Instant, target: Target, load: PlaceLoad) {
        let class = self.published.classes.get(usize::from(target.class));
        let plant = class.map(|class| usize::from(class.plant_of_level[usize::from(class.top_level)]));
        if let Some(plant) = plant.and_then(|plant| self.published.plants.get(plant)) {
            plant.place_loads.reported.note(now, load);
        }
    }
}
