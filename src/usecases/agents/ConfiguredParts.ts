/** What a file says of an agent's sources and of its tools with an address: how they differ, and how they are made so. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type AgentConfiguration, type FieldChange, maxParts } from "../../domain/agents/Configuration.ts"
import { type ConfiguredTool, contradiction, type ToolDefinition } from "../../domain/agents/Tool.ts"
import {
  type ArtifactDeleteConflict,
  type ArtifactDeleteUnavailable,
  Conflict,
  type LimitExceeded,
  type NotFound,
  type ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { canonical } from "../../domain/Json.ts"
import { ConfiguredSource, hasContent } from "../../domain/knowledge/Source.ts"
import { ConfiguredPartStore, type SourcePart, type ToolPart } from "../../store/agents/ConfiguredParts.ts"
import { Sources } from "../knowledge/Sources.ts"
import { Tools, withoutValues } from "./Tools.ts"

/** Characters of all sources and tools that one file may hold. */
const maxPartsLength = 8_000_000

export type PartError =
  | NotFound
  | Conflict
  | ValidationError
  | ServiceUnavailable
  | LimitExceeded
  | ArtifactDeleteConflict
  | ArtifactDeleteUnavailable

/** One planned change of a source or a tool; `take` makes it, within the caller's transaction. */
export interface PartStep {
  readonly change: FieldChange
  readonly take: (agent: AgentScope) => Effect.Effect<void, PartError>
}

/** Of one agent, by name. */
interface Parts {
  readonly sources: ReadonlyMap<string, SourcePart>
  readonly tools: ReadonlyMap<string, ToolPart>
}

type Said = Pick<AgentConfiguration, "sources" | "remoteTools">

const twice = (name: string) =>
  new Conflict({
    message: `Two sources of one agent are called ${name}. Rename one of them, so that names tell them apart.`
  })

const tooMany = () =>
  new Conflict({
    message: `There are more sources and tools than one file may hold (${maxParts} of ${maxPartsLength} characters). Ask for the agents alone.`
  })

/** The database does not keep the order of fields. */
const same = (one: unknown, other: unknown) => canonical(one) === canonical(other)

const decodeSource = Schema.decodeUnknownEither(ConfiguredSource)
const encodeSource = Schema.encodeSync(ConfiguredSource)

const saidOfSource = ({ config, labels, type }: SourcePart): Option.Option<ConfiguredSource> =>
  Either.getRight(decodeSource({ type, config, ...(labels.length === 0 ? {} : { labels }) }))

const withoutSecret = ({ auth, ...tool }: ConfiguredTool): ToolDefinition => {
  if (auth === undefined || auth.kind === "none") return { ...tool, auth: { kind: "none" } }
  const { secret: _, ...rest } = auth
  return { ...tool, auth: rest }
}

const saidOfTool = ({ definition: { auth, ...tool } }: ToolPart): ConfiguredTool =>
  auth.kind === "none" ? tool : { ...tool, auth }

const byName = <A>(entries: Iterable<readonly [string, A]>): Readonly<Record<string, A>> =>
  Object.fromEntries([...entries].toSorted(([one], [other]) => (one < other ? -1 : 1)))

/** As a file says them; nothing of an agent without any. */
export const writtenParts = ({ sources, tools }: Parts): Said => {
  const said = [...sources].flatMap(([name, source]) =>
    Option.match(saidOfSource(source), { onNone: () => [], onSome: (found) => [[name, found] as const] })
  )
  const remoteTools = Array.from(tools, ([name, tool]) => [name, saidOfTool(tool)] as const)
  return {
    ...(said.length === 0 ? {} : { sources: byName(said) }),
    ...(remoteTools.length === 0 ? {} : { remoteTools: byName(remoteTools) })
  }
}

const noParts: Parts = { sources: new Map(), tools: new Map() }

export class ConfiguredParts extends Effect.Service<ConfiguredParts>()("usecases/agents/ConfiguredParts", {
  effect: Effect.gen(function* () {
    const store = yield* ConfiguredPartStore
    const sources = yield* Sources
    const tools = yield* Tools
    const box = yield* SecretBox

    /** Those of every agent; CONFLICT when they are too many for a file or when a name stands for two. */
    const load = Effect.fn("ConfiguredParts.load")(function* (scope: TenantScope) {
      const { bytes, count } = yield* store.size(scope)
      if (count > maxParts || bytes > maxPartsLength) return yield* tooMany()
      const ofAgents = new Map<AgentId, { sources: Map<string, SourcePart>; tools: Map<string, ToolPart> }>()
      const of = (agentId: AgentId) => {
        const parts = ofAgents.get(agentId) ?? { sources: new Map(), tools: new Map() }
        ofAgents.set(agentId, parts)
        return parts
      }
      for (const source of yield* store.sources(scope)) {
        const found = of(source.agentId).sources
        if (found.has(source.name)) return yield* twice(source.name)
        found.set(source.name, source)
      }
      for (const tool of yield* store.tools(scope)) of(tool.agentId).tools.set(tool.name, tool)
      return (agentId: AgentId): Parts => ofAgents.get(agentId) ?? noParts
    })

    const sourceStep = (
      name: string,
      before: SourcePart | undefined,
      after: ConfiguredSource | undefined
    ): PartStep | undefined => {
      const was = before === undefined ? Option.none() : saidOfSource(before)
      const change = {
        field: `sources.${name}`,
        before: Option.getOrNull(Option.map(was, (source): unknown => encodeSource(source))),
        after: after === undefined ? null : encodeSource(after)
      }
      const add = (agent: AgentScope) =>
        after === undefined ? Effect.void : Effect.asVoid(sources.add(agent, { ...after, name }))
      if (before === undefined) return { change, take: add }
      const remove = (agent: AgentScope) => sources.remove(agent, before.id)
      if (after === undefined) return { change, take: remove }
      if (same(change.before, change.after)) return undefined
      if (before.type !== after.type) {
        return { change, take: (agent) => Effect.zipRight(remove(agent), add(agent)) }
      }
      const rereads = !hasContent(after.type) && !same(before.config, after.config)
      return {
        change,
        take: (agent) =>
          sources
            .patch(agent, before.id, { labels: after.labels ?? [], config: after.config })
            .pipe(
              Effect.zipRight(rereads ? sources.sync(agent, before.id, { force: false }) : Effect.void),
              Effect.asVoid
            )
      }
    }

    const isOtherSecret = (stored: string | null, given: Redacted.Redacted | undefined) => {
      if (given === undefined) return Effect.succeed(false)
      if (stored === null) return Effect.succeed(true)
      return Effect.map(
        box.open("tool-secret", stored),
        (opened) => Option.getOrNull(opened) !== Redacted.value(given)
      )
    }

    const shownTool = (tool: ConfiguredTool) => withoutValues(withoutSecret(tool))

    const toolStep = Effect.fn(function* (
      name: string,
      before: ToolPart | undefined,
      after: ConfiguredTool | undefined
    ) {
      const field = `remoteTools.${name}`
      const was = before === undefined ? null : shownTool(saidOfTool(before))
      const remove =
        before === undefined
          ? () => Effect.void
          : ({ tenantId }: AgentScope) => tools.remove({ tenantId }, before.id)
      if (after === undefined) return { change: { field, before: was, after: null }, take: remove }
      const definition = withoutSecret(after)
      const kept = before !== undefined && before.definition.auth.kind === definition.auth.kind
      const hasSecret = after.auth?.secret !== undefined || (kept && before.secret !== null)
      const problem = contradiction(definition, hasSecret)
      if (problem !== undefined) {
        return yield* new ValidationError({
          message: `The tool ${name} does not fit together.`,
          details: { issues: [{ path: ["remoteTools", name, problem.field], message: problem.message }] }
        })
      }
      const otherSecret = yield* isOtherSecret(before?.secret ?? null, after.auth?.secret)
      if (before !== undefined && !otherSecret && same(before.definition, definition)) return undefined
      const shown = shownTool(after)
      // Their values are hidden, and it is they that differ.
      const isHidden = same(was, shown)
      const change = { field, before: was, after: isHidden ? { ...shown, hiddenValues: "changed" } : shown }
      const take = (agent: AgentScope) =>
        Effect.asVoid(
          before === undefined
            ? tools.create(agent, agent.agentId, { ...after, name })
            : tools.patch({ tenantId: agent.tenantId }, before.id, {
                ...after,
                auth: after.auth ?? { kind: "none" }
              })
        )
      return { change, take }
    })

    /** What is to be done to the parts that the file names; those of the other kind stay as they are. */
    const steps = Effect.fn("ConfiguredParts.steps")(function* (parts: Parts, said: Said) {
      const made: Array<PartStep | undefined> = []
      if (said.sources !== undefined) {
        const wanted = new Map(Object.entries(said.sources))
        for (const name of new Set([...parts.sources.keys(), ...wanted.keys()])) {
          made.push(sourceStep(name, parts.sources.get(name), wanted.get(name)))
        }
      }
      if (said.remoteTools !== undefined) {
        const wanted = new Map(Object.entries(said.remoteTools))
        for (const name of new Set([...parts.tools.keys(), ...wanted.keys()])) {
          made.push(yield* toolStep(name, parts.tools.get(name), wanted.get(name)))
        }
      }
      return made.filter((step) => step !== undefined)
    })

    return { load, none: noParts, steps, fingerprint: store.fingerprint } as const
  })
}) {}
