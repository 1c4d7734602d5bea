/** Variables that look like ours and are not. */
import * as Effect from "effect/Effect"
import { environment, Variables } from "./Config.ts"
import { fileVariables } from "./SecretFiles.ts"

/** Of the command line's own, beside those of the server. */
const clientVariables = ["SPOKE_URL", "SPOKE_API_KEY"]

const known: ReadonlySet<string> = new Set([
  ...Object.keys(Variables.fields),
  ...clientVariables,
  ...fileVariables
])

/** Names that look like ours and are not: most likely misspelt. */
export const unknownVariables = (
  environment: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> =>
  Object.keys(environment).filter((name) => name.startsWith("SPOKE_") && !known.has(name))

/** Warns of misspelt variables of this process, which would silently do nothing. */
export const warnOfStrangers = Effect.flatMap(environment, (given) =>
  Effect.forEach(unknownVariables(given), (name) => Effect.logWarning(`${name} is not a variable of Spoke`), {
    discard: true
  })
)
