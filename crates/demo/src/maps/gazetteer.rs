//! The places: some that many people know, on every continent.

use super::globe::Point;
use serde_json::{Value, json};

/// A place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// What it is called.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) kind: &'static str,
    /// The city it is in or near.
    pub(super) city: &'static str,
    /// The country it is in.
    pub(super) country: &'static str,
    /// Where.
    pub(super) point: Point,
}

impl Place {
    /// The place as it is listed.
    pub(super) fn told(&self) -> Value {
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
    let same = |place: &&Place| place.name.to_lowercase() == written.trim().to_lowercase();
    PLACES.iter().find(same).or_else(|| search(written).into_iter().next())
}

const fn place(
    name: &'static str,
    kind: &'static str,
    (city, country): (&'static str, &'static str),
    (latitude, longitude): (f64, f64),
) -> Place {
    Place { name, kind, city, country, point: Point { latitude, longitude } }
}

static PLACES: &[Place] = &[
    place("Eiffel Tower", "landmark", ("Paris", "France"), (48.8584, 2.2945)),
    place("Louvre Museum", "museum", ("Paris", "France"), (48.8606, 2.3376)),
    place("Gare du Nord", "station", ("Paris", "France"), (48.8809, 2.3553)),
    place("Charles de Gaulle Airport", "airport", ("Paris", "France"), (49.0097, 2.5479)),
    place("Brandenburg Gate", "landmark", ("Berlin", "Germany"), (52.5163, 13.3777)),
    place("Berlin Central Station", "station", ("Berlin", "Germany"), (52.5251, 13.3694)),
    place("Tiergarten", "park", ("Berlin", "Germany"), (52.5145, 13.3501)),
    place("Cologne Cathedral", "church", ("Cologne", "Germany"), (50.9413, 6.9583)),
    place("Neuschwanstein Castle", "castle", ("Füssen", "Germany"), (47.5576, 10.7498)),
    place("Frankfurt Airport", "airport", ("Frankfurt", "Germany"), (50.0379, 8.5622)),
    place("Big Ben", "landmark", ("London", "United Kingdom"), (51.5007, -0.1246)),
    place("British Museum", "museum", ("London", "United Kingdom"), (51.5194, -0.1270)),
    place("Hyde Park", "park", ("London", "United Kingdom"), (51.5073, -0.1657)),
    place("Heathrow Airport", "airport", ("London", "United Kingdom"), (51.4700, -0.4543)),
    place("Edinburgh Castle", "castle", ("Edinburgh", "United Kingdom"), (55.9486, -3.1999)),
    place("Stonehenge", "landmark", ("Salisbury", "United Kingdom"), (51.1789, -1.8262)),
    place("Trinity College", "university", ("Dublin", "Ireland"), (53.3438, -6.2546)),
    place("Rijksmuseum", "museum", ("Amsterdam", "Netherlands"), (52.3600, 4.8852)),
    place("Amsterdam Central Station", "station", ("Amsterdam", "Netherlands"), (52.3791, 4.9003)),
    place("Grand Place", "square", ("Brussels", "Belgium"), (50.8467, 4.3525)),
    place("Colosseum", "landmark", ("Rome", "Italy"), (41.8902, 12.4922)),
    place("Trevi Fountain", "landmark", ("Rome", "Italy"), (41.9009, 12.4833)),
    place("Uffizi Gallery", "museum", ("Florence", "Italy"), (43.7687, 11.2550)),
    place("St Mark's Square", "square", ("Venice", "Italy"), (45.4341, 12.3388)),
    place("Sagrada Família", "church", ("Barcelona", "Spain"), (41.4036, 2.1744)),
    place("Prado Museum", "museum", ("Madrid", "Spain"), (40.4138, -3.6921)),
    place("Alhambra", "palace", ("Granada", "Spain"), (37.1761, -3.5881)),
    place("Belém Tower", "landmark", ("Lisbon", "Portugal"), (38.6916, -9.2160)),
    place("Acropolis", "landmark", ("Athens", "Greece"), (37.9715, 23.7257)),
    place("Schönbrunn Palace", "palace", ("Vienna", "Austria"), (48.1845, 16.3122)),
    place("Charles Bridge", "bridge", ("Prague", "Czechia"), (50.0865, 14.4114)),
    place("Zurich Main Station", "station", ("Zurich", "Switzerland"), (47.3779, 8.5403)),
    place("Matterhorn", "mountain", ("Zermatt", "Switzerland"), (45.9766, 7.6585)),
    place("Little Mermaid", "landmark", ("Copenhagen", "Denmark"), (55.6929, 12.5993)),
    place("Vasa Museum", "museum", ("Stockholm", "Sweden"), (59.3280, 18.0914)),
    place("Oslo Opera House", "theatre", ("Oslo", "Norway"), (59.9074, 10.7531)),
    place("Senate Square", "square", ("Helsinki", "Finland"), (60.1695, 24.9525)),
    place("Main Market Square", "square", ("Kraków", "Poland"), (50.0619, 19.9373)),
    place("Hagia Sophia", "mosque", ("Istanbul", "Türkiye"), (41.0086, 28.9802)),
    place("Great Pyramid of Giza", "landmark", ("Giza", "Egypt"), (29.9792, 31.1342)),
    place("Table Mountain", "mountain", ("Cape Town", "South Africa"), (-33.9628, 18.4098)),
    place("Nairobi National Park", "park", ("Nairobi", "Kenya"), (-1.3733, 36.8587)),
    place("Burj Khalifa", "landmark", ("Dubai", "United Arab Emirates"), (25.1972, 55.2744)),
    place("Taj Mahal", "landmark", ("Agra", "India"), (27.1751, 78.0421)),
    place("Gateway of India", "landmark", ("Mumbai", "India"), (18.9220, 72.8347)),
    place("Marina Bay Sands", "hotel", ("Singapore", "Singapore"), (1.2834, 103.8607)),
    place("Forbidden City", "palace", ("Beijing", "China"), (39.9163, 116.3972)),
    place("Victoria Peak", "mountain", ("Hong Kong", "China"), (22.2759, 114.1455)),
    place("Gyeongbokgung Palace", "palace", ("Seoul", "South Korea"), (37.5796, 126.9770)),
    place("Tokyo Station", "station", ("Tokyo", "Japan"), (35.6812, 139.7671)),
    place("Mount Fuji", "mountain", ("Fujinomiya", "Japan"), (35.3606, 138.7274)),
    place("Sydney Opera House", "theatre", ("Sydney", "Australia"), (-33.8568, 151.2153)),
    place("Sky Tower", "landmark", ("Auckland", "New Zealand"), (-36.8485, 174.7622)),
    place("Statue of Liberty", "landmark", ("New York", "United States"), (40.6892, -74.0445)),
    place("Central Park", "park", ("New York", "United States"), (40.7829, -73.9654)),
    place("Grand Central Terminal", "station", ("New York", "United States"), (40.7527, -73.9772)),
    place("White House", "landmark", ("Washington", "United States"), (38.8977, -77.0365)),
    place("Golden Gate Bridge", "bridge", ("San Francisco", "United States"), (37.8199, -122.4783)),
    place("Space Needle", "landmark", ("Seattle", "United States"), (47.6205, -122.3493)),
    place("CN Tower", "landmark", ("Toronto", "Canada"), (43.6426, -79.3871)),
    place("Chichén Itzá", "landmark", ("Valladolid", "Mexico"), (20.6843, -88.5678)),
    place("Christ the Redeemer", "landmark", ("Rio de Janeiro", "Brazil"), (-22.9519, -43.2105)),
    place("Obelisco", "landmark", ("Buenos Aires", "Argentina"), (-34.6037, -58.3816)),
    place("Machu Picchu", "landmark", ("Cusco", "Peru"), (-13.1631, -72.5450)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_on_the_globe_and_there_once() {
        assert!(PLACES.len() >= 60);
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
    fn a_name_goes_before_what_only_mentions_it() {
        assert_eq!(search("berlin")[0].name, "Berlin Central Station");
        assert_eq!(find("central park").unwrap().name, "Central Park");
        assert_eq!(find("tower auckland").unwrap().name, "Sky Tower");
        assert!(find("Atlantis").is_none());
    }
}
