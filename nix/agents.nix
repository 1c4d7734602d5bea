# Agents of the checks: a museum's desk, with what it knows, a tool and test cases.
let
  rooms = [
    "north"
    "south"
    "east"
    "west"
    "upper"
    "lower"
  ];
in
{
  Desk = {
    instructions.file = ./agents/prompt.md;
    sources.Rooms = {
      type = "TEXT";
      config.text.file = ./agents/rooms.md;
    };
    remoteTools.stock = {
      description = "How many of an article are left.";
      http.url = "https://shop.example.com/stock/{sku}";
      parameters = {
        type = "object";
        properties.sku.type = "string";
      };
      auth = {
        kind = "bearer";
        secret.env = "STOCK_KEY";
      };
    };
    widget.color = "#3d4fc4";
    cases = map (room: {
      question = "What hangs in the ${room} room?";
      expectFacts = [ "${room} room shows" ];
    }) rooms;
  };
}
