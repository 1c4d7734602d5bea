/** Constraints between variables that are valid individually. */

/** The embedding model that ships with the package. */
export const offlineModel = "offline"

type Constraint = readonly [isBroken: boolean, variable: string, message: string]

/**
 * Violated constraints between variables. Checked on the raw environment, so that they are reported also when a value
 * is invalid.
 */
export const brokenConstraints = (given: Readonly<Record<string, string | undefined>>) => {
  const has = (variable: string) => given[variable] !== undefined
  const valueOf = (variable: string) => given[variable]?.trim().toLowerCase()
  const required = (variable: string, other: string): Constraint => [
    has(other) && !has(variable),
    variable,
    `Required with ${other}`
  ]
  const constraints: ReadonlyArray<Constraint> = [
    [
      has("DATABASE_URL") && !has("SPOKE_SECRET"),
      "SPOKE_SECRET",
      "Required with DATABASE_URL: at least 32 random bytes"
    ],
    required("SPOKE_SECRET", "SPOKE_SECRET_PREVIOUS"),
    [
      has("DATABASE_URL") && has("SPOKE_ADMIN_EMAIL") && !has("SPOKE_ADMIN_PASSWORD"),
      "SPOKE_ADMIN_PASSWORD",
      "Required with SPOKE_ADMIN_EMAIL and DATABASE_URL: only an embedded start generates one"
    ],
    required("DATABASE_URL", "SPOKE_DATABASE_DIRECT_URL"),
    [
      valueOf("SPOKE_VECTOR") === "pgvector" && !has("DATABASE_URL"),
      "DATABASE_URL",
      "Required with SPOKE_VECTOR=pgvector"
    ],
    required("AWS_ACCESS_KEY_ID", "SPOKE_ARTIFACTS"),
    required("AWS_SECRET_ACCESS_KEY", "SPOKE_ARTIFACTS"),
    [
      (given["SPOKE_EMBEDDING_MODEL"]?.trim() ?? offlineModel) !== offlineModel && !has("OPENAI_API_KEY"),
      "OPENAI_API_KEY",
      "Required with SPOKE_EMBEDDING_MODEL"
    ],
    required("SPOKE_RERANK_MODEL", "SPOKE_RERANK_URL"),
    required("SPOKE_RERANK_URL", "SPOKE_RERANK_MODEL"),
    [
      valueOf("SPOKE_GROUNDING_CHECKER") === "model" && !has("OPENAI_API_KEY") && !has("SPOKE_PROVIDERS"),
      "OPENAI_API_KEY",
      "Required with SPOKE_GROUNDING_CHECKER=model, unless SPOKE_PROVIDERS is set"
    ],
    required("SPOKE_GROUNDING_URL", "SPOKE_GROUNDING_API_KEY"),
    [
      has("DATABASE_URL") && has("SPOKE_SNAPSHOT_INTERVAL"),
      "SPOKE_SNAPSHOT_INTERVAL",
      "Only with the embedded database: a server has backups of its own"
    ],
    required("SPOKE_SNAPSHOT_INTERVAL", "SPOKE_SNAPSHOT_DIR"),
    required("SPOKE_SNAPSHOT_INTERVAL", "SPOKE_SNAPSHOTS_KEPT"),
    required("SMTP_URL", "ALERT_EMAIL")
  ]
  return constraints.flatMap(([isBroken, variable, message]) => (isBroken ? [{ variable, message }] : []))
}
