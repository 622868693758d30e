//! The gazetteer: a few well-known places on every inhabited continent.

use super::globe::Point;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    /// The city it is in or near.
    pub(super) city: &'static str,
    pub(super) country: &'static str,
    pub(super) point: Point,
}

impl Place {
    /// The place as it is listed.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "kind": self.kind,
            "city": self.city,
            "country": self.country,
            "latitude": self.point.latitude,
            "longitude": self.point.longitude,
        })
    }

    /// All that is known of it in words, in small letters.
    fn words(&self) -> String {
        [self.name, self.kind, self.city, self.country].join(" ").to_lowercase()
    }
}

/// The places in which every word of the query occurs; those whose names begin with it first.
pub(super) fn search(query: &str) -> Vec<&'static Place> {
    let query = query.to_lowercase();
    let wanted: Vec<&str> = query.split_whitespace().collect();
    let fits = |place: &&Place| {
        let words = place.words();
        wanted.iter().all(|word| words.contains(word))
    };
    let mut found: Vec<&'static Place> = PLACES.iter().filter(fits).collect();
    found.sort_by_key(|place| {
        let name = place.name.to_lowercase();
        (!name.starts_with(&query), !name.contains(&query))
    });
    found
}

/// The place that is meant: by its name, or the first that is found.
pub(super) fn find(written: &str) -> Option<&'static Place> {
    let written = written.trim().to_lowercase();
    let named = ["the ", "a ", "an "].iter().find_map(|article| written.strip_prefix(article));
    let named = named.unwrap_or(&written).trim_start();
    let same = |place: &&Place| place.name.to_lowercase() == named;
    PLACES.iter().find(same).or_else(|| search(named).into_iter().next())
}

const fn place(
    name: &'static str,
    kind: &'static str,
    city: &'static str,
    country: &'static str,
    latitude: f64,
    longitude: f64,
) -> Place {
    Place { name, kind, city, country, point: Point { latitude, longitude } }
}

static PLACES: &[Place] = &[
    place("Eiffel Tower", "landmark", "Paris", "France", 48.8584, 2.2945),
    place("Louvre Museum", "museum", "Paris", "France", 48.8606, 2.3376),
    place("Brandenburg Gate", "landmark", "Berlin", "Germany", 52.5163, 13.3777),
    place("Berlin Central Station", "station", "Berlin", "Germany", 52.5251, 13.3694),
    place("British Museum", "museum", "London", "United Kingdom", 51.5194, -0.1270),
    place("Colosseum", "landmark", "Rome", "Italy", 41.8902, 12.4922),
    place("Prado Museum", "museum", "Madrid", "Spain", 40.4138, -3.6921),
    place("Great Pyramid of Giza", "landmark", "Giza", "Egypt", 29.9792, 31.1342),
    place("Table Mountain", "mountain", "Cape Town", "South Africa", -33.9628, 18.4098),
    place("Taj Mahal", "landmark", "Agra", "India", 27.1751, 78.0421),
    place("Tokyo Station", "station", "Tokyo", "Japan", 35.6812, 139.7671),
    place("Sydney Opera House", "theatre", "Sydney", "Australia", -33.8568, 151.2153),
    place("Sky Tower", "landmark", "Auckland", "New Zealand", -36.8485, 174.7622),
    place("Central Park", "park", "New York", "United States", 40.7829, -73.9654),
    place("Golden Gate Bridge", "bridge", "San Francisco", "United States", 37.8199, -122.4783),
    place("Machu Picchu", "landmark", "Cusco", "Peru", -13.1631, -72.5450),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_on_the_globe_and_there_once() {
        assert!(PLACES.len() >= 16);
        let mut names: Vec<&str> = PLACES.iter().map(|place| place.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PLACES.len());
        for place in PLACES {
            let Point { latitude, longitude } = place.point;
            assert!(latitude.abs() <= 90.0 && longitude.abs() <= 180.0, "{place:?}");
            assert!(![place.name, place.kind, place.city, place.country].contains(&""));
            assert_eq!(find(place.name), Some(place));
        }
    }

    #[test]
    fn a_matching_name_goes_before_a_mention() {
        assert_eq!(search("berlin")[0].name, "Berlin Central Station");
        assert_eq!(find("central park").unwrap().name, "Central Park");
        assert_eq!(find("tower auckland").unwrap().name, "Sky Tower");
        assert!(find("Atlantis").is_none());
    }

    #[test]
    fn an_article_is_no_part_of_a_name() {
        let name = |written: &str| find(written).map(|place| place.name);
        for written in ["Eiffel Tower", "the Eiffel Tower", " The eiffel tower "] {
            assert_eq!(name(written), Some("Eiffel Tower"), "{written}");
        }
        assert_eq!(name("the louvre"), Some("Louvre Museum"));
        assert_eq!(name("the moon"), None);
    }
}
