/** Constraints between variables that are valid individually. */

/** The embedding model that ships with the package. */
export const offline = "offline"

/**
 * Violated constraints between variables. Checked on the raw environment, so that they are reported also when a value
 * is invalid.
 */
export const brokenConstraints = (given: Readonly<Record<string, string | undefined>>) => [
  ...(given["DATABASE_URL"] !== undefined && given["SPOKE_SECRET"] === undefined
    ? [{ variable: "SPOKE_SECRET", message: "Required with DATABASE_URL: at least 32 random bytes" }]
    : []),
  ...(given["SPOKE_SECRET_PREVIOUS"] !== undefined && given["SPOKE_SECRET"] === undefined
    ? [{ variable: "SPOKE_SECRET", message: "Required with SPOKE_SECRET_PREVIOUS" }]
    : []),
  ...(given["DATABASE_URL"] !== undefined &&
  given["SPOKE_ADMIN_EMAIL"] !== undefined &&
  given["SPOKE_ADMIN_PASSWORD"] === undefined
    ? [
        {
          variable: "SPOKE_ADMIN_PASSWORD",
          message: "Required with SPOKE_ADMIN_EMAIL and DATABASE_URL: only an embedded start generates one"
        }
      ]
    : []),
  ...(given["SPOKE_VECTOR"]?.trim().toLowerCase() === "pgvector" && given["DATABASE_URL"] === undefined
    ? [{ variable: "DATABASE_URL", message: "Required with SPOKE_VECTOR=pgvector" }]
    : []),
  ...(given["SPOKE_ARTIFACTS"] === undefined
    ? []
    : ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
        .filter((variable) => given[variable] === undefined)
        .map((variable) => ({ variable, message: "Required with SPOKE_ARTIFACTS" }))),
  ...((given["SPOKE_EMBEDDING_MODEL"]?.trim() ?? offline) !== offline && given["OPENAI_API_KEY"] === undefined
    ? [{ variable: "OPENAI_API_KEY", message: "Required with SPOKE_EMBEDDING_MODEL" }]
    : []),
  ...(given["SPOKE_RERANK_URL"] !== undefined && given["SPOKE_RERANK_MODEL"] === undefined
    ? [{ variable: "SPOKE_RERANK_MODEL", message: "Required with SPOKE_RERANK_URL" }]
    : []),
  ...(given["SPOKE_RERANK_URL"] === undefined && given["SPOKE_RERANK_MODEL"] !== undefined
    ? [{ variable: "SPOKE_RERANK_URL", message: "Required with SPOKE_RERANK_MODEL" }]
    : []),
  ...(given["SPOKE_GROUNDING_CHECKER"]?.trim().toLowerCase() === "model" &&
  given["OPENAI_API_KEY"] === undefined &&
  given["SPOKE_PROVIDERS"] === undefined
    ? [
        {
          variable: "OPENAI_API_KEY",
          message: "Required with SPOKE_GROUNDING_CHECKER=model, unless SPOKE_PROVIDERS is set"
        }
      ]
    : []),
  ...(given["SPOKE_GROUNDING_API_KEY"] !== undefined && given["SPOKE_GROUNDING_URL"] === undefined
    ? [{ variable: "SPOKE_GROUNDING_URL", message: "Required with SPOKE_GROUNDING_API_KEY" }]
    : []),
  ...(given["DATABASE_URL"] !== undefined && given["SPOKE_SNAPSHOT_INTERVAL"] !== undefined
    ? [
        {
          variable: "SPOKE_SNAPSHOT_INTERVAL",
          message: "Only with the embedded database: a server has backups of its own"
        }
      ]
    : []),
  ...["SPOKE_SNAPSHOT_DIR", "SPOKE_SNAPSHOTS_KEPT"]
    .filter((variable) => given[variable] !== undefined && given["SPOKE_SNAPSHOT_INTERVAL"] === undefined)
    .map((variable) => ({ variable: "SPOKE_SNAPSHOT_INTERVAL", message: `Required with ${variable}` })),
  ...(given["ALERT_EMAIL"] !== undefined && given["SMTP_URL"] === undefined
    ? [{ variable: "SMTP_URL", message: "Required with ALERT_EMAIL" }]
    : [])
]
