#![no_main]

pgvet_fuzz::sql_target!(pgvet_fuzz::check::tree);
