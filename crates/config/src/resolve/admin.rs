//! Where operators come in.

use super::Resolver;
use crate::admin_settings::AdminSettings;
use crate::auth_settings::AuthSettings;
use crate::config::Purpose;
use crate::error::Problem;
use crate::exposure::check_admin_exposure;
use crate::listen::{self, ListenAddress};
use crate::settings::ListenSettings;
use crate::written::Admin;

const AT: &[&str] = &["admin", "listen"];

impl Resolver<'_> {
    pub(super) fn admin(
        &mut self,
        admin: &Admin,
        listen: &ListenSettings,
        auth: Option<&AuthSettings>,
    ) -> AdminSettings {
        let Some(written) = &admin.listen else { return AdminSettings::default() };
        let Ok(address) = written.0.parse::<ListenAddress>() else {
            self.wrong(AT, format!("must be {}", listen::FORMS));
            return AdminSettings::default();
        };
        if address.port() != 0 && address.to_string() == listen.address {
            self.wrong(AT, "is the address of clients: use another port, or leave it out");
        }
        // What is wrong with a field has been said, and it is not missing.
        let is_wrong = |field: &str| {
            let is_it = |problem: &Problem| {
                problem.field.as_deref().is_some_and(|it| it.split('.').next() == Some(field))
            };
            self.problems.iter().any(is_it)
        };
        let is_known =
            !["auth", "tls", "trusted_proxies", "public_url", "allow_hosts"].into_iter().any(is_wrong);
        if is_known
            && self.purpose == Purpose::Serving
            && let Err(error) = check_admin_exposure(&address, listen, auth)
        {
            self.wrong(AT, error.to_string());
        }
        AdminSettings { listen: Some(address.to_string()) }
    }
}
