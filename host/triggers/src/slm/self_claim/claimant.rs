//! Decides which side claims the events of this node: the kubelet or this driver, never both. It must not know what a
//! claim is.

use crate::slm::Registration;

/// The side that claims the events of this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claimant {
    /// The kubelet if it supports SLM, else this driver. The kubelet reports its support when it finds the driver's
    /// socket.
    #[default]
    Auto,
    /// The kubelet, whatever it reports.
    Kubelet,
    /// This driver, without waiting for the kubelet's report. A kubelet that registers the driver claims all the same.
    Driver,
}

impl Claimant {
    /// True if it is settled which side claims the events of this node.
    pub const fn is_settled(self, registration: &Registration) -> bool {
        matches!(registration, Registration::Registered) || self.is_driver(registration)
    }

    /// True if this driver claims, according to the kubelet's last report. A kubelet that registered the driver claims
    /// events itself; so does one that refuses the driver for any reason other than lacking SLM.
    pub(in crate::slm) const fn is_driver(self, registration: &Registration) -> bool {
        match (self, registration) {
            (Self::Kubelet, _) | (_, Registration::Registered | Registration::Refused { .. }) => false,
            (_, Registration::Unsupported { .. }) => true,
            (claimant, Registration::Waiting | Registration::Silent) => matches!(claimant, Self::Driver),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_claims_where_it_can_and_silence_is_not_an_answer() {
        let message = String::new;
        let unsupported = Registration::Unsupported { message: message() };
        let refused = Registration::Refused { message: message() };
        for (registration, auto, driver) in [
            (Registration::Waiting, false, true),
            (Registration::Silent, false, true),
            (Registration::Registered, false, false),
            (refused, false, false),
            (unsupported, true, true),
        ] {
            assert_eq!(Claimant::Auto.is_driver(&registration), auto, "{registration:?}");
            assert_eq!(
                Claimant::Driver.is_driver(&registration),
                driver,
                "{registration:?}"
            );
            assert!(!Claimant::Kubelet.is_driver(&registration), "{registration:?}");
            let is_registered = registration == Registration::Registered;
            assert_eq!(Claimant::Kubelet.is_settled(&registration), is_registered);
            assert_eq!(Claimant::Auto.is_settled(&registration), is_registered || auto);
        }
    }
}
