//! Who claims the events of this node: the kubelet or this driver, never both. It must not know what a claim is.

use crate::slm::Registration;

/// Who claims the events of this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claimant {
    /// The kubelet if it knows SLM, else this driver. The kubelet says so itself when it finds the driver's socket.
    #[default]
    Auto,
    /// The kubelet, whatever it says.
    Kubelet,
    /// This driver, without waiting for the kubelet's word. A kubelet that registers the driver claims all the same.
    Driver,
}

impl Claimant {
    /// Whether it is settled who claims the events of this node: the kubelet, which calls us, or this driver.
    pub const fn is_settled(self, registration: &Registration) -> bool {
        matches!(registration, Registration::Registered) || self.is_driver(registration)
    }

    /// Whether it is this driver's part, by what the kubelet has said last. A kubelet that registered us claims events
    /// by itself; one that refuses us for another reason than not knowing SLM does so, too.
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
    fn the_kubelet_claims_what_it_can_and_silence_is_no_word() {
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
