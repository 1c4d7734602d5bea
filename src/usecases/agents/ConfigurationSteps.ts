/** Planned changes of agents, and of their parts, by a configuration file. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { Agent } from "../../domain/agents/Agent.ts"
import type { AgentChange, AgentConfiguration, FieldChange } from "../../domain/agents/Configuration.ts"
import type { ChannelId } from "../../domain/Ids.ts"
import {
  type ArtifactDeleteConflict,
  type ArtifactDeleteUnavailable,
  Conflict,
  LimitExceeded,
  type NotFound,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import type { AuditContext } from "../accounts/AuditTrail.ts"
import {
  changedFields,
  type ConfiguredAgent,
  configuredAgentOf,
  configuredSettingsOf
} from "./ConfiguredSettings.ts"

export type PartError =
  | NotFound
  | Conflict
  | ValidationError
  | ServiceUnavailable
  | LimitExceeded
  | ArtifactDeleteConflict
  | ArtifactDeleteUnavailable

/** Makes the change in the caller's transaction. */
type ApplyPart = (agent: AgentScope) => Effect.Effect<void, PartError>

/** A path of field names, outermost first. */
export type FieldPath = ReadonlyArray<string>

interface ErrorBody {
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** The error with `prefix` before the path of each issue. An error without issues gets one for `prefix`. */
const withPathPrefix = (prefix: FieldPath, { details = {}, message }: ErrorBody) => {
  const { issues = [{ path: [], message }], ...more } = details
  const prefixedIssues = (Array.isArray(issues) ? issues : []).filter(Predicate.isRecord).map((issue) => {
    const path: ReadonlyArray<unknown> = Array.isArray(issue["path"]) ? issue["path"] : []
    return { ...issue, path: [...prefix, ...path] }
  })
  return { message, details: { ...more, issues: prefixedIssues } }
}

/** Puts `prefix` before the paths of a validation error. */
export const prefixValidationError = (prefix: FieldPath) => (error: ValidationError) =>
  new ValidationError(withPathPrefix(prefix, error))

/** Puts `prefix` before the paths of all errors that name fields. */
export const prefixErrors =
  (prefix: FieldPath) =>
  <A>(effect: Effect.Effect<A, PartError>): Effect.Effect<A, PartError> =>
    Effect.catchTags(effect, {
      VALIDATION_ERROR: (error) => prefixValidationError(prefix)(error),
      CONFLICT: (error) => new Conflict(withPathPrefix(prefix, error)),
      LIMIT_EXCEEDED: (error) => new LimitExceeded(withPathPrefix(prefix, error)),
      SERVICE_UNAVAILABLE: (error) => new ServiceUnavailable(withPathPrefix(prefix, error))
    })

export interface PartStep {
  /** Path of the part within its agent in the file. Paths of errors are relative to it. */
  readonly path: FieldPath
  readonly change: FieldChange
  /** The channel whose account becomes free for another agent. Applied before the steps that free none. */
  readonly frees?: ChannelId | undefined
  /** Runs before the transaction, and calls providers. `freed` are the channels that the file's steps free. */
  readonly prepare: (by: AuditContext, freed: ReadonlySet<ChannelId>) => Effect.Effect<ApplyPart, PartError>
}

/** A step that calls no other service. */
export const partStep = (
  path: FieldPath,
  change: Omit<FieldChange, "field">,
  apply: ApplyPart
): PartStep => ({
  path,
  change: { field: path.join("."), ...change },
  prepare: () => Effect.succeed(apply)
})

const meanings = {
  create: "Nobody has talked with it yet.",
  update:
    "Its next replies use the new settings, also in running conversations. A reply that has begun ends with the old ones.",
  parts:
    "Its settings stay. A new source is used after it has been read. A removed source is no longer used.",
  delete:
    "Its keys, sources, channels and conversations are deleted too. People who talk with it now get no further reply."
} as const

/** A planned change, with the state that it is based on. */
export interface AgentStep extends AgentChange {
  readonly configured: ConfiguredAgent
  readonly version: number | null
  /** The published version; null for a new agent. */
  readonly published: number | null
  readonly parts: ReadonlyArray<PartStep>
  /** True when only parts change: no version is made. */
  readonly partsOnly: boolean
  /** Channels that are deleted with the agent. */
  readonly channels: ReadonlyArray<ChannelId>
}

export interface PreparedStep {
  readonly step: AgentStep
  readonly applyParts: ReadonlyArray<ApplyPart>
}

export const freedBy = ({ frees }: PartStep) => (frees === undefined ? [] : [frees])

export const shownAgent = ({
  channels: ______,
  parts: _,
  partsOnly: __,
  published: ___,
  configured: ____,
  version: _____,
  ...change
}: AgentStep): AgentChange => change

export const stepOf = (
  name: string,
  config: AgentConfiguration,
  found: Agent | undefined,
  parts: ReadonlyArray<PartStep>
): ReadonlyArray<AgentStep> => {
  const configured = configuredAgentOf(config)
  const partChanges = parts.map(({ change }) => change)
  if (found === undefined) {
    const fields = [...changedFields({}, configured), ...partChanges]
    const creation = { action: "create", agent: name, id: null, fields, meaning: meanings.create } as const
    const isNew = { version: null, published: null, partsOnly: false, channels: [] }
    return [{ ...creation, ...isNew, configured, parts }]
  }
  const renamed = found.name === name ? [] : [{ field: "name", before: found.name, after: name }]
  const settings = [...renamed, ...changedFields(configuredSettingsOf(found), configured)]
  const { id, publishedVersion: published, version } = found
  if (settings.length + partChanges.length === 0) return []
  const partsOnly = settings.length === 0
  const meaning = partsOnly ? meanings.parts : meanings.update
  const change = {
    action: "update",
    agent: name,
    id,
    fields: [...settings, ...partChanges],
    meaning
  } as const
  return [{ ...change, configured, version, published, parts, partsOnly, channels: [] }]
}

export const removalStepOf = ({ id, name, publishedVersion: published, version }: Agent): AgentStep => ({
  action: "delete",
  agent: name,
  id,
  fields: [],
  meaning: meanings.delete,
  configured: {},
  version,
  published,
  parts: [],
  partsOnly: false,
  channels: []
})
