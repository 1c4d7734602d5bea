const spoke = require("spoke")

import("./trial.mjs").then(async ({ trial }) => console.log(await trial(spoke)))
