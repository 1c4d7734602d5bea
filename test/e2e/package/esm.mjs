import * as spoke from "spoke"
import { trial } from "./trial.mjs"

console.log(await trial(spoke))
