/** Secrets in files, for containers and systemd: NAME_FILE is the path of a file with the value of NAME. */
import * as fs from "node:fs"

/** Variables that may be given as a file: all that contain a secret. */
export const secretVariables = [
  "DATABASE_URL",
  "SPOKE_DATABASE_DIRECT_URL",
  "REDIS_URL",
  "SMTP_URL",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "OPENAI_API_KEY",
  "SPOKE_GROUNDING_API_KEY",
  "SPOKE_RERANK_API_KEY",
  "SPOKE_SECRET",
  "SPOKE_SECRET_PREVIOUS",
  "SPOKE_OPERATOR_TOKEN",
  "SPOKE_ADMIN_PASSWORD",
  "BILLING_WEBHOOK_SECRET",
  "CHANNEL_VERIFY_TOKEN",
  "CHANNEL_APP_SECRET",
  "OTEL_EXPORTER_OTLP_HEADERS"
] as const

/** Not secret, but long values. */
const longVariables = ["SPOKE_MODEL_PRICES"] as const

const builtInVariables: ReadonlyArray<string> = [...secretVariables, ...longVariables]

export const fileVariables: ReadonlyArray<string> = builtInVariables.map((name) => `${name}_FILE`)

/** Larger than any secret. */
const maxFileBytes = 65_536

const readSecretFile = (file: string): string | null => {
  try {
    return fs.statSync(file).size > maxFileBytes ? null : fs.readFileSync(file, "utf8").trim()
  } catch {
    return null
  }
}

/**
 * The variables, with values of `names` from files. An empty file counts as unset. `environment` must not contain empty
 * values.
 */
export const withFiles = (
  environment: Readonly<Record<string, string | undefined>>,
  names: ReadonlyArray<string> = builtInVariables
) => {
  const given: Record<string, string | undefined> = { ...environment }
  const problems: Array<{ readonly variable: string; readonly message: string }> = []
  for (const name of names) {
    const variable = `${name}_FILE`
    const file = environment[variable]
    if (file === undefined) continue
    const text = readSecretFile(file)
    if (environment[name] !== undefined)
      problems.push({ variable, message: `Expected either this or ${name}, not both` })
    else if (text === null) problems.push({ variable, message: "Expected the path of a readable file" })
    else if (text !== "") given[name] = text
  }
  return { given, problems }
}

/** {@link withFiles} for further variables, which the settings name. */
export const withFurtherFiles = (
  environment: Readonly<Record<string, string | undefined>>,
  names: ReadonlyArray<string>
) =>
  withFiles(
    environment,
    [...new Set(names)].filter((name) => !builtInVariables.includes(name))
  )
