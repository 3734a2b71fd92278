//! The flags of drain settings, made from the table of settings in `scupper_config`.

use std::marker::PhantomData;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use scupper_config::{Flag, FlagValues, GivenSettings, SETTINGS, Setting};

use crate::args::EVICTIONS;
use crate::options::Problems;

/// The flags of drain settings that a command has, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags<C>(Vec<(&'static Setting, &'static Flag, String)>, PhantomData<C>);

/// Which flags a command has.
pub trait HasFlags {
    /// Its flag of a setting.
    fn flag(setting: &Setting) -> Option<&Flag>;
}

/// `scupper kubelet-plugin`.
#[derive(Clone, Debug, Default)]
pub struct Driver;

/// `scupper plan` and `scupper drain`: the flags of `kubectl drain`, which mean what they mean there, and ours. What is not
/// given is as the configuration file says, or else as for `kubectl drain`.
#[derive(Clone, Debug, Default)]
pub struct Terminal;

impl HasFlags for Driver {
    fn flag(setting: &Setting) -> Option<&Flag> {
        setting.driver_flag.as_ref()
    }
}

impl HasFlags for Terminal {
    fn flag(setting: &Setting) -> Option<&Flag> {
        setting.command_flag.as_ref()
    }
}

impl<C> SettingFlags<C> {
    /// The settings that they give.
    pub(crate) fn given(&self, problems: &mut Problems) -> GivenSettings {
        let mut given = GivenSettings::default();
        for (setting, flag, text) in &self.0 {
            problems.check(given.add_flag(setting, flag, text));
        }
        given
    }
}

impl<C: HasFlags> SettingFlags<C> {
    fn all() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
        SETTINGS
            .iter()
            .filter_map(|setting| Some((setting, C::flag(setting)?)))
    }
}

impl<C: HasFlags> Args for SettingFlags<C> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::all().map(|(setting, flag)| arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: HasFlags> FromArgMatches for SettingFlags<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = Self::all().filter_map(|(setting, flag)| Some((setting, flag, typed(flag, matches)?)));
        Ok(Self(typed.collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg(setting: &Setting, flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    let arg = match flag.is_main {
        true => arg,
        false => arg.help_heading(EVICTIONS),
    };
    if flag.value.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = arg.value_name(flag.value).hide_possible_values(true);
    match setting.flag_values() {
        FlagValues::Bool => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(value_parser!(bool)),
        FlagValues::Whole(range) => arg
            .allow_negative_numbers(*range.start() < 0)
            .value_parser(value_parser!(i64).range(range)),
        FlagValues::Words(words) => arg.value_parser(PossibleValuesParser::new(words.iter().copied())),
        FlagValues::Text => arg.value_parser(ValueParser::string()),
    }
}

fn typed(flag: &Flag, matches: &ArgMatches) -> Option<String> {
    if flag.value.is_empty() {
        return matches.get_flag(flag.name).then(|| "true".to_owned());
    }
    let text = matches.get_raw(flag.name)?.next()?;
    Some(text.to_string_lossy().into_owned())
}
