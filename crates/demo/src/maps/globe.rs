//! Great-circle distances and bearings.

/// The mean radius of the earth.
const EARTH_KM: f64 = 6_371.0;

/// A place on the globe, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// North is positive.
    pub(super) latitude: f64,
    /// East is positive.
    pub(super) longitude: f64,
}

impl Point {
    /// The shortest way along the surface.
    pub(super) fn km_to(self, other: Point) -> f64 {
        let from = self.latitude.to_radians();
        let to = other.latitude.to_radians();
        let up = to - from;
        let along = (other.longitude - self.longitude).to_radians();
        let half = |angle: f64| (angle / 2.0).sin().powi(2);
        let chord = half(up) + from.cos() * to.cos() * half(along);
        // Between opposite places the sum can come out a little above 1.
        2.0 * EARTH_KM * chord.min(1.0).sqrt().asin()
    }

    /// In which direction that way begins: 0 is north, 90 is east.
    pub(super) fn bearing_to(self, other: Point) -> f64 {
        let from = self.latitude.to_radians();
        let to = other.latitude.to_radians();
        let along = (other.longitude - self.longitude).to_radians();
        let east = along.sin() * to.cos();
        let north = from.cos() * to.sin() - from.sin() * to.cos() * along.cos();
        east.atan2(north).to_degrees().rem_euclid(360.0)
    }
}

/// A bearing in a word: `north-east`.
pub(super) fn direction(bearing: f64) -> &'static str {
    const NAMES: [&str; 8] =
        ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
    let eighth = (bearing / 45.0).round().rem_euclid(8.0);
    // A whole number below 8 by now.
    NAMES[eighth as usize % NAMES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(latitude: f64, longitude: f64) -> Point {
        Point { latitude, longitude }
    }

    #[test]
    fn known_distances_come_out() {
        let paris = point(48.8566, 2.3522);
        let berlin = point(52.52, 13.405);
        assert!((paris.km_to(berlin) - 878.0).abs() < 3.0, "{}", paris.km_to(berlin));
        assert!((paris.bearing_to(berlin) - 58.0).abs() < 2.0, "{}", paris.bearing_to(berlin));
        assert_eq!(paris.km_to(paris), 0.0);
        let half_way_round = point(0.0, 0.0).km_to(point(0.0, 180.0));
        assert!((half_way_round - 20_015.0).abs() < 1.0, "{half_way_round}");
        // Over the line where the date changes.
        let fiji = point(-18.14, 178.44).km_to(point(-18.14, -178.44));
        assert!(fiji < 400.0, "{fiji}");
    }

    #[test]
    fn a_bearing_has_a_name() {
        for (bearing, name) in [
            (0.0, "north"),
            (44.0, "north-east"),
            (200.0, "south"),
            (337.0, "north-west"),
            (359.9, "north"),
        ] {
            assert_eq!(direction(bearing), name, "{bearing}");
        }
    }
}
