/** Every table, and to whom its rows belong. docs/design/tenancy.md explains the kinds. */

/**
 * `tenant`: each row belongs to one tenant, and has its id. `installation`: shared, or written before its tenant is
 * known. `derived`: computed from rows of tenants, and found by an agent that was found by its tenant.
 */
export type Kind = "tenant" | "installation" | "derived"

export interface TableRecord {
  readonly kind: Kind
  /**
   * For a table of tenants: the columns by which its tenant is found if it is not known yet. For others: why they name
   * no tenant.
   */
  readonly note?: string
}

const tenant: TableRecord = { kind: "tenant" }
const found = (note: string): TableRecord => ({ kind: "tenant", note })
const installation = (note: string): TableRecord => ({ kind: "installation", note })
const derived = (note: string): TableRecord => ({ kind: "derived", note })

export const tables: Readonly<Record<string, TableRecord>> = {
  access_tokens: found("secret_hash"),
  agent_run_events: tenant,
  agent_runs: tenant,
  agent_stats: tenant,
  agent_usage: tenant,
  agent_versions: tenant,
  agent_widgets: found("public_id, whose fingerprint is that of its key"),
  agents: found("id"),
  api_keys: found("secret_hash"),
  artifact_claims: installation("an original is stored once, whoever has it"),
  artifacts: installation("an original is stored once, whoever has it"),
  audit_entries: tenant,
  billing_events: installation("an event may name no tenant; a later one of its object may"),
  channel_inbox: installation("kept before it is known whose the account is"),
  channel_outbox: tenant,
  channels: found("channel and external_id, where active"),
  chunk_embeddings: tenant,
  chunks: tenant,
  conversation_artifacts: tenant,
  conversations: tenant,
  crawl_entries: tenant,
  dedupe_keys: installation("kept before it is known whose the message is"),
  documents: tenant,
  email_logs: installation("a mail to whoever runs the service has no tenant"),
  embedding_failures: tenant,
  embedding_target: installation("one row"),
  end_user_aliases: tenant,
  end_users: tenant,
  idempotency_keys: tenant,
  ingestion_jobs: tenant,
  instances: installation("processes"),
  login_failures: installation("addresses that may be nobody's"),
  master_keys: installation("of the service itself"),
  message_feedback: tenant,
  messages: tenant,
  migrations: installation("of the service itself"),
  migrations_pgvector: installation("of the service itself"),
  corrections: tenant,
  passage_exclusions: tenant,
  passage_findings: tenant,
  passage_scans: tenant,
  passage_statements: tenant,
  passage_sweep: installation("one row"),
  passages: tenant,
  provider_pauses: installation("of the service itself"),
  question_vectors: tenant,
  queue_jobs: installation("workers take jobs of all owners in turns; the payload names the tenant"),
  rate_counters: installation("names of what is limited"),
  retrieval_recall: derived("figures of an agent"),
  run_passages: tenant,
  passkeys: found("credential_id"),
  scim_group_members: tenant,
  scim_groups: tenant,
  scim_tokens: found("secret_hash"),
  experiments: tenant,
  experiment_results: tenant,
  publish_thresholds: tenant,
  gap_searches: tenant,
  reported_gaps: tenant,
  tool_connections: tenant,
  tool_sign_ins: tenant,
  budgets: tenant,
  budget_holds: tenant,
  budget_periods: tenant,
  model_usage: tenant,
  other_model_usage: tenant,
  conversation_entries: tenant,
  conversation_labels: tenant,
  conversation_reads: tenant,
  inbox_items: tenant,
  source_readings: tenant,
  source_secrets: tenant,
  sources: tenant,
  sso_connections: tenant,
  sso_domains: tenant,
  user_identities: tenant,
  subscriptions: tenant,
  tenant_credits: tenant,
  tenant_retention: tenant,
  tenant_storage: tenant,
  tenant_usage: tenant,
  tenants: installation("the list of tenants"),
  tenant_moves: installation("at the destination the tenant arrives after its row"),
  tenant_moves_changes: installation("keys of rows, for as long as a move lasts"),
  tenant_moves_jobs: installation("jobs, for as long as a move lasts"),
  tenant_moves_parts: installation("keys of rows, for as long as a move lasts"),
  test_cases: tenant,
  tools: tenant,
  turn_claims: tenant,
  user_invitations: found("token_hash"),
  user_sessions: found("token_hash"),
  users: found("email"),
  vector_profiles: installation("models"),
  manage_answers: tenant,
  webhook_deliveries: tenant,
  webhook_endpoints: tenant,
  widget_sessions: tenant
}

export const tenantTables: ReadonlyArray<string> = Object.entries(tables).flatMap(([name, { kind }]) =>
  kind === "tenant" ? [name] : []
)

/** Statements that find a tenant by a value from the caller that is unique in the installation. */
const directory = {
  "capabilities/KeyStore/Sql.ts select": ["api_keys k"],
  "store/accounts/AccessTokens.ts find": ["access_tokens", "access_tokens t"],
  "store/accounts/Passkeys.ts find": ["passkeys p"],
  "store/accounts/ScimTokens.ts tenantOf": ["scim_tokens"],
  "store/accounts/Sessions.ts findUser": ["user_sessions", "user_sessions s"],
  "store/accounts/SingleSignOn.ts tenantOf": ["sso_domains d", "sso_connections c"],
  // Checks whether another tenant has it.
  "store/accounts/SingleSignOn.ts confirm": ["sso_domains", "sso_domains o"],
  "store/accounts/Sessions.ts remove": ["user_sessions"],
  "store/accounts/Team.ts findInvited": ["user_invitations i"],
  "store/accounts/Team.ts redeem": ["user_invitations i"],
  "store/accounts/Users.ts findByEmail": ["users u"],
  "store/channels/ChannelConversations.ts activeRoutes": ["channels"],
  "store/channels/ChannelConversations.ts routeOfContact": ["channels ch", "channels o"],
  "store/channels/Channels.ts byAccount": ["channels"],
  "store/channels/Outbox.ts statement": ["channels h"],
  "store/channels/Outbox.ts isOwn": ["channels h"],
  "store/conversations/ConversationImports.ts insert": ["agents a"],
  // Checks which tenant has the account now.
  "store/conversations/EndUsers.ts isOfPerson": ["channels o"],
  "store/conversations/EndUsers.ts deliveries": ["channels o"],
  "store/conversations/EndUsers.ts eraseDeliveries": ["channels o"],
  "store/channels/EventOwners.ts isOwnEvent": ["channels o"],
  "store/moves/HeldJobs.ts hadOther": ["channels o"],
  "store/moves/HeldJobs.ts isMoved": ["channels o"],
  "store/moves/HeldJobs.ts take": ["channels o"],
  "store/moves/HeldJobs.ts ofTenant": ["channels o"],
  "store/moves/HeldJobs.ts readEvents": ["channels o"],
  "store/moves/HeldJobs.ts removeEvents": ["channels o"]
}

/** Statements over all tenants: sweeps in batches, and commands of the operator. */
const everyTenant = {
  "app/Lifecycle.ts checks": ["agent_usage"],
  "app/Lifecycle.ts oldestWaiting": ["ingestion_jobs"],
  "capabilities/VectorSearch/WarmUp.ts selectBusiest": ["agent_usage", "api_keys"],
  "capabilities/VectorSearch/WarmUp.ts prepareEmbedder": ["agent_stats"],
  "store/IdempotencyKeys.ts prune": ["idempotency_keys"],
  "store/billing/Budgets.ts prune": ["budget_periods p"],
  "store/MasterKeys.ts usedKeyIds": [
    "tools",
    "channels",
    "webhook_endpoints",
    "sso_connections",
    "tool_connections"
  ],
  "store/MasterKeys.ts sealedCounts": [
    "tools",
    "channels",
    "webhook_endpoints",
    "sso_connections",
    "tool_connections"
  ],
  "store/accounts/Retention.ts claim": ["tenant_retention"],
  "store/accounts/Retention.ts longestRuns": ["tenant_retention"],
  "store/billing/Storage.ts claim": ["tenant_storage"],
  "store/accounts/Sessions.ts insert": ["user_sessions"],
  "store/accounts/Users.ts isEmpty": ["users"],
  "store/channels/Unanswered.ts listForgotten": ["messages m"],
  "store/chat/AgentRuns.ts toStop": ["agent_runs"],
  "store/chat/ProcessLeases.ts findDead": ["agent_runs r"],
  "store/chat/ProcessLeases.ts releaseBudgets": ["budget_holds r"],
  "store/chat/TurnClaims.ts prune": ["turn_claims"],
  "store/chat/WidgetSessions.ts prune": ["widget_sessions"],
  "store/conversations/ReportedGaps.ts claim": ["webhook_endpoints e"],
  "store/conversations/LegacyMessages.ts batch": ["messages"],
  "store/conversations/LegacyMessages.ts giveKeys": ["messages"],
  "store/accounts/ManageAnswers.ts sweep": ["manage_answers"],
  "store/events/WebhookDeliveries.ts sweep": ["webhook_deliveries"],
  "store/events/WebhookListeners.ts sweep": ["webhook_endpoints"],
  "store/knowledge/ArtifactRows.ts beginRemoval": ["sources", "conversation_artifacts"],
  "store/knowledge/ArtifactRows.ts orphans": ["sources s", "conversation_artifacts c"],
  "store/knowledge/EmbeddingProfiles.ts agentsToMove": ["agent_stats"],
  "store/knowledge/EmbeddingProfiles.ts removeOldVectors": ["agent_stats stats", "chunk_embeddings"],
  "store/knowledge/EmbeddingProfiles.ts sourcesWithoutVectors": [
    "agent_stats stats",
    "sources o",
    "embedding_failures"
  ],
  "store/knowledge/PassageScans.ts due": ["agent_stats s", "passage_scans p"],
  "store/knowledge/IngestionJobs.ts withoutQueueJob": ["ingestion_jobs"],
  "store/knowledge/Refreshes.ts claim": ["sources s"],
  "store/knowledge/Reindex.ts outdatedDocuments": ["documents"],
  "store/knowledge/VectorCopies.ts findCopies": ["chunk_embeddings"],
  "store/knowledge/VectorEncoding.ts countWaiting": ["chunk_embeddings"],
  "store/knowledge/VectorIndexes.ts largestAgents": ["agent_stats"],
  "store/knowledge/VectorIndexes.ts missingIndexes": ["agent_stats"],
  "store/knowledge/VectorIndexes.ts obsoleteIndexes": ["agent_stats"]
}

/** Statements that may omit `tenant_id`, by file and declaration, with the tables for which they may. */
export const exceptions: Readonly<Record<string, ReadonlyArray<string>>> = { ...directory, ...everyTenant }
