/** Agents as a file: read, compared with what there is, and made so in one transaction. */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Actor } from "../../domain/accounts/Audit.ts"
import type { Agent, CreateAgent } from "../../domain/agents/Agent.ts"
import type {
  AgentChange,
  AgentConfiguration,
  ApplyRequest,
  Configuration,
  FieldChange,
  Plan
} from "../../domain/agents/Configuration.ts"
import { Conflict, type NotFound, type ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { Agents, initial } from "./Agents.ts"

/** Agents that are read at a time. */
const pageSize = 100

const twice = (name: string) =>
  new Conflict({
    message: `Two agents are called ${name}. Rename one of them, so that names tell them apart.`
  })
const outdatedPlan = () =>
  new Conflict({ message: "The agents have been changed since the plan was made. Plan again." })

type Said = Omit<CreateAgent, "name">

const saidOf = ({ renamedFrom: _, ...said }: AgentConfiguration): Said => said

/** What a file says of an agent, field by field, with what it leaves out. */
const fieldsOf = (said: Said): Readonly<Record<string, unknown>> => {
  const {
    contextTokens,
    greeting,
    instructions,
    masking,
    maxSearches,
    minScore,
    mode,
    model,
    tools,
    topK,
    unsupported
  } = initial({ name: "", ...said })
  return {
    instructions,
    model,
    greeting,
    "retrieval.topK": topK,
    "retrieval.minScore": minScore,
    tools,
    "grounding.mode": mode,
    "grounding.unsupported": unsupported,
    "grounding.contextTokens": contextTokens,
    "grounding.maxSearches": maxSearches,
    masking
  }
}

const ofAgent = ({ greeting, grounding, instructions, masking, model, retrieval, tools }: Agent): Said => ({
  instructions,
  ...(model === null ? {} : { model }),
  ...(greeting === null ? {} : { greeting }),
  retrieval,
  tools,
  grounding,
  masking
})

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

const changedFields = (before: Said, after: Said): ReadonlyArray<FieldChange> => {
  const old = fieldsOf(before)
  return Object.entries(fieldsOf(after)).flatMap(([field, value]) =>
    same(old[field], value) ? [] : [{ field, before: old[field], after: value }]
  )
}

const differing = <A extends object>(given: A, usual: A): Partial<A> => {
  const kept: Partial<A> = { ...given }
  for (const name in given) if (same(given[name], usual[name])) delete kept[name]
  return kept
}

/** As a file says it: without what is as in an agent that was just made. */
const written = (agent: Agent): AgentConfiguration => {
  const {
    greeting,
    instructions,
    masking: _,
    model,
    tools,
    topK,
    minScore,
    ...grounding
  } = initial({ name: "" })
  const { name: __, ...usual } = { ...grounding }
  const retrieval = differing(agent.retrieval, { topK, minScore })
  const kept = differing(agent.grounding, usual)
  return {
    ...(agent.instructions === instructions ? {} : { instructions: agent.instructions }),
    ...(agent.model === null || agent.model === model ? {} : { model: agent.model }),
    ...(agent.greeting === null || agent.greeting === greeting ? {} : { greeting: agent.greeting }),
    ...(Object.keys(retrieval).length === 0 ? {} : { retrieval }),
    ...(same(agent.tools, tools) ? {} : { tools: agent.tools }),
    ...(Object.keys(kept).length === 0 ? {} : { grounding: kept }),
    ...(agent.masking === null ? {} : { masking: agent.masking })
  }
}

const revisionOf = (agents: ReadonlyArray<Agent>) =>
  createHash("sha256")
    .update(
      agents.map(({ id, publishedVersion, version }) => `${id} ${version} ${publishedVersion}`).join("\n")
    )
    .digest("base64url")

const meanings = {
  create: "Nobody talks with it yet: it has no key, no widget and no channel.",
  update:
    "Its next replies are made so, in conversations under way too; a reply that has begun is finished as it was.",
  delete:
    "Its keys, sources, channels and conversations go with it. Who talks with it now gets no further reply."
} as const

/** A planned change, with what it is made from. */
interface Step extends AgentChange {
  readonly said: Said
  readonly version: number | null
}

type Taking = Effect.Effect<Agent | null, NotFound | Conflict | ValidationError | ServiceUnavailable>

const shown = ({ said: _, version: __, ...change }: Step): AgentChange => change

const stepOf = (name: string, config: AgentConfiguration, found: Agent | undefined): ReadonlyArray<Step> => {
  const said = saidOf(config)
  if (found === undefined) {
    const fields = changedFields({}, said)
    return [
      { action: "create", agent: name, id: null, fields, meaning: meanings.create, said, version: null }
    ]
  }
  const renamed = found.name === name ? [] : [{ field: "name", before: found.name, after: name }]
  const fields = [...renamed, ...changedFields(ofAgent(found), said)]
  const { id, version } = found
  return fields.length === 0
    ? []
    : [{ action: "update", agent: name, id, fields, meaning: meanings.update, said, version }]
}

/** The agents of the tenant by name; CONFLICT when a name stands for two. */
const named = (agents: ReadonlyArray<Agent>) => {
  const byName = new Map<string, Agent>()
  for (const agent of agents) {
    if (byName.has(agent.name)) return Effect.fail(twice(agent.name))
    byName.set(agent.name, agent)
  }
  return Effect.succeed<ReadonlyMap<string, Agent>>(byName)
}

const stepsOf = Effect.fn(function* (agents: ReadonlyArray<Agent>, config: Configuration, prune: boolean) {
  const there = yield* named(agents)
  const taken = new Set<string>()
  const steps: Array<Step> = []
  for (const [name, said] of Object.entries(config.agents)) {
    const before = said.renamedFrom
    // Once it has been renamed, the file says so and there is nothing left to do.
    const found = there.get(name) ?? (before === undefined ? undefined : there.get(before))
    if (
      found !== undefined &&
      (taken.has(found.id) || (found.name !== name && Object.hasOwn(config.agents, found.name)))
    ) {
      return yield* new ValidationError({
        message: "The file gives one agent two names.",
        details: {
          issues: [
            { path: ["config", "agents", name, "renamedFrom"], message: "Another entry stands for it" }
          ]
        }
      })
    }
    if (found !== undefined) taken.add(found.id)
    steps.push(...stepOf(name, said, found))
  }
  const unnamed = prune ? agents.filter(({ id }) => !taken.has(id)) : []
  const removals = unnamed.map(({ id, name, version }): Step => ({
    action: "delete",
    agent: name,
    id,
    fields: [],
    meaning: meanings.delete,
    said: {},
    version
  }))
  return [...steps, ...removals]
})

export class Configurations extends Effect.Service<Configurations>()("usecases/agents/Configurations", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const agents = yield* Agents
    const keyStore = yield* KeyStore

    const all = Effect.fn("Configurations.all")(function* (scope: TenantScope) {
      const found: Array<Agent> = []
      let after: string | undefined
      do {
        const page: { rows: ReadonlyArray<Agent>; next: string | null } = yield* agents.list(scope, {
          limit: pageSize,
          after
        })
        found.push(...page.rows)
        after = page.next ?? undefined
      } while (after !== undefined)
      return found
    })

    /** The file of what there is; CONFLICT when two agents have one name. */
    const read = Effect.fn("Configurations.read")(function* (scope: TenantScope) {
      const found = yield* all(scope)
      const byName = yield* named(found)
      const entries = Array.from(byName, ([name, agent]) => [name, written(agent)] as const)
      const config: Configuration = {
        agents: Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))
      }
      return { config, revision: revisionOf(found) }
    })

    /** What would change. */
    const plan = Effect.fn("Configurations.plan")(function* (
      scope: TenantScope,
      { config, prune = false }: Pick<ApplyRequest, "config" | "prune">
    ) {
      const found = yield* all(scope)
      const steps = yield* stepsOf(found, config, prune)
      const made: Plan = { changes: steps.map(shown), revision: revisionOf(found) }
      return made
    })

    const take = (
      scope: TenantScope,
      { action, agent: name, id, said, version }: Step,
      author: Actor | null
    ): Taking => {
      if (id === null) return agents.create(scope, { name, ...said }, author)
      if (action === "delete") return Effect.as(agents.remove(scope, id), null)
      const { contextTokens, maxSearches, minScore, mode, topK, unsupported, ...settings } = initial({
        name,
        ...said
      })
      const retrieval = { topK, minScore }
      const grounding = { mode, unsupported, contextTokens, maxSearches }
      return agents.patch(scope, id, { ...settings, retrieval, grounding }, version, author)
    }

    /**
     * Makes the agents as the file says, all of it or, with any failure, nothing. CONFLICT while another one is applied, and
     * when the agents are no longer those of `revision`. `author` is that of the versions it makes.
     */
    const apply = Effect.fn("Configurations.apply")(function* (
      scope: TenantScope,
      { config, prune = false, revision }: ApplyRequest,
      author: Actor | null = null
    ) {
      const { tenantId } = scope
      return yield* Effect.gen(function* () {
        const [lock] = yield* sql<{ readonly free: boolean }>`
          select pg_try_advisory_xact_lock(hashtextextended(${`apply ${tenantId}`}, 0)) as free`
        if (lock?.free !== true) return yield* new Conflict({ message: "Another file is being applied." })
        const found = yield* all(scope)
        if (revision !== undefined && revision !== revisionOf(found)) return yield* outdatedPlan()
        const steps = yield* stepsOf(found, config, prune)
        const changes = yield* Effect.forEach(steps, (step) =>
          Effect.map(take(scope, step, author), (made): AgentChange => ({
            ...shown(step),
            id: made === null ? step.id : made.id
          }))
        )
        const applied: Plan = { changes, revision: revisionOf(yield* all(scope)) }
        return applied
      }).pipe(
        sql.withTransaction,
        Effect.catchTags({ SqlError: Effect.die, NOT_FOUND: () => outdatedPlan() }),
        // Also of agents that are gone: no key of theirs may stay remembered.
        Effect.ensuring(keyStore.invalidate({ tenantId }))
      )
    })

    return { read, plan, apply } as const
  })
}) {}
