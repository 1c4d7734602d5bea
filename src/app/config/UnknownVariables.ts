/** Detects misspelt variables. */
import * as Effect from "effect/Effect"
import { hint } from "../../domain/UnknownField.ts"
import { environment, Variables } from "./Config.ts"
import { fileVariables } from "./SecretFiles.ts"

/** Variables of the command line, in addition to the server's. */
const clientVariables = [
  "SPOKE_URL",
  "SPOKE_API_KEY",
  "SPOKE_TOKEN",
  "SPOKE_TO_URL",
  "SPOKE_TO_OPERATOR_TOKEN"
]

const prefix = "SPOKE_"

const knownVariables: ReadonlySet<string> = new Set([
  ...Object.keys(Variables.fields),
  ...clientVariables,
  ...fileVariables
])

/** A warning for each unknown name that resembles ours, with the name that was probably meant. */
export const unknownVariables = (
  environment: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> =>
  Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !knownVariables.has(name))
    .map((name) => `${name} is not a variable of Spoke${hint(name, knownVariables)}`)

/** Warns of misspelt variables of this process, which have no effect. */
export const warnOfUnknownVariables = Effect.flatMap(environment, (given) =>
  Effect.forEach(unknownVariables(given), (warning) => Effect.logWarning(warning), { discard: true })
)
