//! Tools for the other files of this folder: two that are in order, and those that are not.

use contract::{
    AgentTool, Event, Placement, ToolDefinition, ToolScope,
    tool::{Read, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

macro_rules! tool {
    ($name:ident, $effect:ty, $event:literal, $tool:literal, $description:literal $(, $more:ident)?) => {
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {}
        tool!(@of $name, $effect, $event, $tool, $description $(, $more)?);
    };
    (@of $name:ident, $effect:ty, $event:literal, $tool:literal, $description:literal $(, $more:ident)?) => {
        impl AgentTool for $name {
            type Effect = $effect;
            const DEFINITION: ToolDefinition = ToolDefinition::new(
                Event::new($event),
                $tool,
                ToolScope::General,
                Placement::Supervisor,
                $description,
            )
            $(.$more())?;

            fn example() -> Value {
                json!({})
            }
        }
    };
}

tool!(ListPets, Read, "list.pets", "list_pets", "List the pets.");
tool!(CreatePet, Write, "create.pet", "create_pet", "Enter a pet.", approved);

tool!(ListPetsAgain, Read, "list.pets", "list_pets", "List the pets again.");
tool!(WriteThatLists, Write, "list.cats", "list_cats", "List the cats.");
tool!(ReadThatCreates, Read, "create.cat", "create_cat", "Enter a cat.");
tool!(Misnamed, Read, "list.dogs", "dogs", "List the dogs.");
tool!(Undescribed, Read, "list.birds", "list_birds", "");
tool!(ApprovedRead, Read, "list.fish", "list_fish", "List the fish.", approved);

#[derive(Deserialize, JsonSchema)]
pub enum EitherPet {
    Cat {},
    Dog {},
}
#[derive(Deserialize, JsonSchema)]
pub struct BarePet(pub String);
#[derive(Deserialize, JsonSchema)]
pub struct UnitPet;
tool!(@of EitherPet, Read, "get.either_pet", "get_either_pet", "Get one or the other.");
tool!(@of BarePet, Read, "get.bare_pet", "get_bare_pet", "Get the pet.");
tool!(@of UnitPet, Read, "get.unit_pet", "get_unit_pet", "Get the only pet.");
