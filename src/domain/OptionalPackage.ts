/**
 * Optional packages, which only some settings or documents need. The host installs them; they are loaded on first use.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { codeOf } from "./ThrownErrors.ts"

/** The packages of each feature. */
export const optionalPackages = {
  "Redis (REDIS_URL)": ["ioredis"],
  "Reading PDF files": ["unpdf"],
  "Reading text in images": ["tesseract.js", "@tesseract.js-data/eng"]
} as const
export type PackageUse = keyof typeof optionalPackages

/** An optional package is not installed. `message` names the packages and the command that installs them. */
export class PackageMissing extends Schema.TaggedError<PackageMissing>()("PackageMissing", {
  packages: Schema.NonEmptyArray(Schema.String),
  message: Schema.String
}) {}

export const packageMissing = (use: PackageUse): PackageMissing => {
  const packages = optionalPackages[use]
  const noun = packages.length > 1 ? "the packages" : "the package"
  return new PackageMissing({
    packages,
    message: `${use} needs ${noun} ${packages.join(" and ")}, which Spoke does not bring: npm install ${packages.join(" ")}`
  })
}

/** Error codes of Node for a missing package: of `import`, and of `require`. */
const missingModuleCodes = ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]

/** The module that `load` imports. Any failure but a missing package is a defect. */
export const optional = <A>(use: PackageUse, load: () => Promise<A>): Effect.Effect<A, PackageMissing> =>
  Effect.tryPromise(load).pipe(
    Effect.catchAll(({ error }) =>
      missingModuleCodes.includes(codeOf(error)) ? Effect.fail(packageMissing(use)) : Effect.die(error)
    )
  )
