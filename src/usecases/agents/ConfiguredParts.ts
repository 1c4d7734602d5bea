/**
 * The parts of an agent in a configuration file, other than its settings: how they differ from the stored ones, and how
 * they are applied.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type AgentConfiguration, maxParts } from "../../domain/agents/Configuration.ts"
import type { TestCase, TestCaseFields } from "../../domain/agents/TestCase.ts"
import { type ConfiguredTool, contradiction, type ToolDefinition } from "../../domain/agents/Tool.ts"
import type { AgentWidget } from "../../domain/agents/Widget.ts"
import { Conflict, invalidField } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { canonical } from "../../domain/Json.ts"
import { ConfiguredSource, hasContent } from "../../domain/knowledge/Source.ts"
import { TestCaseStore } from "../../store/agents/TestCases.ts"
import { ConfiguredPartStore, type SourcePart, type ToolPart } from "../../store/agents/ConfiguredParts.ts"
import { type ChannelParts, ConfiguredChannels } from "./ConfiguredChannels.ts"
import { widgetSteps, widgetToFileForm } from "./ConfiguredWidgets.ts"
import { testCaseFields } from "./ExperimentReports.ts"
import { type PartStep, partStep } from "./ConfigurationSteps.ts"
import { TestCases } from "./TestCases.ts"
import { Sources } from "../knowledge/Sources.ts"
import { Tools, withoutValues } from "./Tools.ts"
import { Widgets } from "./Widgets.ts"

/** Maximum characters of all sources and tools that one file may hold. */
const maxPartsLength = 8_000_000

/** The parts of one agent, by name. */
interface Parts {
  readonly sources: ReadonlyMap<string, SourcePart>
  readonly tools: ReadonlyMap<string, ToolPart>
  /** Oldest first. Cases made from turns are left out: they contain text of end users. */
  readonly cases: ReadonlyArray<TestCase>
  readonly widget: AgentWidget | undefined
  readonly channels: ChannelParts
}

type PartSettings = Pick<AgentConfiguration, "sources" | "remoteTools" | "cases" | "widget" | "channels">

const duplicateSource = (name: string) =>
  new Conflict({
    message: `Two sources of one agent are called ${name}. Rename one of them, because names identify them.`
  })

const tooMany = () =>
  new Conflict({
    message: `There are more sources, tools, channels and test cases than one file may hold (${maxParts} sources, tools and channels, ${maxPartsLength} characters). Ask for the agents alone.`
  })

/** Key order is ignored, because the database does not keep it. */
const isSame = (one: unknown, other: unknown) => canonical(one) === canonical(other)

const decodeSource = Schema.decodeUnknownEither(ConfiguredSource)
const encodeSource = Schema.encodeSync(ConfiguredSource)

const configuredSourceOf = ({ config, labels, type }: SourcePart): Option.Option<ConfiguredSource> =>
  Either.getRight(decodeSource({ type, config, ...(labels.length === 0 ? {} : { labels }) }))

const withoutSecret = ({ auth, ...tool }: ConfiguredTool): ToolDefinition => {
  if (auth === undefined || auth.kind === "none") return { ...tool, auth: { kind: "none" } }
  const { secret: _, ...rest } = auth
  return { ...tool, auth: rest }
}

const configuredToolOf = ({ definition: { auth, ...tool } }: ToolPart): ConfiguredTool =>
  auth.kind === "none" ? tool : { ...tool, auth }

const byName = <A>(entries: Iterable<readonly [string, A]>): Readonly<Record<string, A>> =>
  Object.fromEntries([...entries].toSorted(([one], [other]) => (one < other ? -1 : 1)))

const noParts: Parts = {
  sources: new Map(),
  tools: new Map(),
  cases: [],
  widget: undefined,
  channels: []
}

/** Number of each text: the same case may occur several times. */
const counted = (texts: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

/** The items of `all` without an equal item in `other`. Equal items are matched one to one. */
const surplusOf = <A>(all: ReadonlyArray<A>, textOf: (one: A) => string, other: ReadonlyArray<string>) => {
  const left = new Map(counted(other))
  return all.filter((one) => {
    const text = textOf(one)
    const count = left.get(text) ?? 0
    left.set(text, count - 1)
    return count <= 0
  })
}

export class ConfiguredParts extends Effect.Service<ConfiguredParts>()("usecases/agents/ConfiguredParts", {
  effect: Effect.gen(function* () {
    const store = yield* ConfiguredPartStore
    const sources = yield* Sources
    const tools = yield* Tools
    const box = yield* SecretBox
    const caseStore = yield* TestCaseStore
    const cases = yield* TestCases
    const widgets = yield* Widgets
    const channels = yield* ConfiguredChannels

    /**
     * Loads the parts of every agent. CONFLICT when they are too large for a file, or when two parts have the same
     * name.
     */
    const load = Effect.fn("ConfiguredParts.load")(function* (scope: TenantScope) {
      const { bytes, count } = yield* store.size(scope)
      if (count > maxParts || bytes > maxPartsLength) return yield* tooMany()
      interface Found {
        readonly sources: Map<string, SourcePart>
        readonly tools: Map<string, ToolPart>
        readonly cases: Array<TestCase>
      }
      const ofAgents = new Map<AgentId, Found>()
      const partsOf = (agentId: AgentId) => {
        const parts: Found = ofAgents.get(agentId) ?? { sources: new Map(), tools: new Map(), cases: [] }
        ofAgents.set(agentId, parts)
        return parts
      }
      for (const source of yield* store.sources(scope)) {
        const found = partsOf(source.agentId).sources
        if (found.has(source.name)) return yield* duplicateSource(source.name)
        found.set(source.name, source)
      }
      for (const tool of yield* store.tools(scope)) partsOf(tool.agentId).tools.set(tool.name, tool)
      for (const found of yield* caseStore.listWritten(scope)) partsOf(found.agentId).cases.push(found)
      const widgetsOf = yield* widgets.ofTenant(scope)
      const channelsOf = yield* channels.load(scope)
      return (agentId: AgentId): Parts => ({
        ...noParts,
        ...ofAgents.get(agentId),
        widget: widgetsOf.get(agentId),
        channels: channelsOf(agentId)
      })
    })

    /** The parts in file form; empty for an agent without parts. */
    const toFileForm = (parts: Parts): PartSettings => {
      const { cases, sources, tools } = parts
      const widget = widgetToFileForm(parts.widget)
      const configuredSources = [...sources].flatMap(([name, source]) =>
        Option.match(configuredSourceOf(source), {
          onNone: () => [],
          onSome: (found) => [[name, found] as const]
        })
      )
      const remoteTools = Array.from(tools, ([name, tool]) => [name, configuredToolOf(tool)] as const)
      return {
        ...(configuredSources.length === 0 ? {} : { sources: byName(configuredSources) }),
        ...(remoteTools.length === 0 ? {} : { remoteTools: byName(remoteTools) }),
        ...(cases.length === 0 ? {} : { cases: cases.map(testCaseFields) }),
        ...(widget === undefined ? {} : { widget }),
        ...(parts.channels.length === 0 ? {} : { channels: channels.toFileForm(parts.channels) })
      }
    }

    const sourceStep = (
      name: string,
      before: SourcePart | undefined,
      after: ConfiguredSource | undefined
    ): PartStep | undefined => {
      const previous = before === undefined ? Option.none() : configuredSourceOf(before)
      const path = ["sources", name]
      const change = {
        before: Option.getOrNull(Option.map(previous, (source): unknown => encodeSource(source))),
        after: after === undefined ? null : encodeSource(after)
      }
      const add = (agent: AgentScope) =>
        after === undefined ? Effect.void : Effect.asVoid(sources.add(agent, { ...after, name }))
      if (before === undefined) return partStep(path, change, add)
      const remove = (agent: AgentScope) => sources.remove(agent, before.id)
      if (after === undefined) return partStep(path, change, remove)
      if (isSame(change.before, change.after)) return undefined
      if (before.type !== after.type) {
        return partStep(path, change, (agent) => Effect.zipRight(remove(agent), add(agent)))
      }
      const rereads = !hasContent(after.type) && !isSame(before.config, after.config)
      return partStep(path, change, (agent) =>
        sources
          .patch(agent, before.id, { labels: after.labels ?? [], config: after.config })
          .pipe(
            Effect.zipRight(rereads ? sources.sync(agent, before.id, { force: false }) : Effect.void),
            Effect.asVoid
          )
      )
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
      const path = ["remoteTools", name]
      const previous = before === undefined ? null : shownTool(configuredToolOf(before))
      const remove =
        before === undefined
          ? () => Effect.void
          : ({ tenantId }: AgentScope) => tools.remove({ tenantId }, before.id)
      if (after === undefined) return partStep(path, { before: previous, after: null }, remove)
      const definition = withoutSecret(after)
      const isSameKind = before !== undefined && before.definition.auth.kind === definition.auth.kind
      const hasSecret = after.auth?.secret !== undefined || (isSameKind && before.secret !== null)
      const problem = contradiction(definition, hasSecret)
      if (problem !== undefined) {
        return yield* invalidField(
          ["remoteTools", name, problem.field],
          problem.message,
          `The settings of the tool ${name} contradict each other.`
        )
      }
      const otherSecret = yield* isOtherSecret(before?.secret ?? null, after.auth?.secret)
      if (before !== undefined && !otherSecret && isSame(before.definition, definition)) return undefined
      const shown = shownTool(after)
      // When only hidden values differ, the shown values are equal.
      const isHidden = isSame(previous, shown)
      const change = { before: previous, after: isHidden ? { ...shown, hiddenValues: "changed" } : shown }
      const apply = (agent: AgentScope) =>
        Effect.asVoid(
          before === undefined
            ? tools.create(agent, agent.agentId, { ...after, name })
            : tools.patch({ tenantId: agent.tenantId }, before.id, {
                ...after,
                auth: after.auth ?? { kind: "none" }
              })
        )
      return partStep(path, change, apply)
    })

    /** Test cases have no names, so all of them are one step. Unchanged ones keep their ids. */
    const caseSteps = (
      before: ReadonlyArray<TestCase>,
      after: ReadonlyArray<TestCaseFields>
    ): ReadonlyArray<PartStep> => {
      const keyOf = (one: TestCase) => canonical(testCaseFields(one))
      const removed = surplusOf(before, keyOf, after.map(canonical))
      const added = surplusOf(after, canonical, before.map(keyOf))
      if (removed.length + added.length === 0) return []
      const change = { before: removed.map(testCaseFields), after: added }
      const apply = ({ agentId, tenantId }: AgentScope) =>
        Effect.gen(function* () {
          yield* Effect.forEach(removed, ({ id }) => cases.remove({ tenantId }, id), { discard: true })
          if (added.length > 0) yield* cases.add({ tenantId }, agentId, added)
        })
      return [partStep(["cases"], change, apply)]
    }

    /** The planned changes. Kinds of parts that the file leaves out stay as they are. */
    const steps = Effect.fn("ConfiguredParts.steps")(function* (parts: Parts, configured: PartSettings) {
      const planned: Array<PartStep | undefined> = []
      if (configured.sources !== undefined) {
        const wanted = new Map(Object.entries(configured.sources))
        for (const name of new Set([...parts.sources.keys(), ...wanted.keys()])) {
          planned.push(sourceStep(name, parts.sources.get(name), wanted.get(name)))
        }
      }
      if (configured.remoteTools !== undefined) {
        const wanted = new Map(Object.entries(configured.remoteTools))
        for (const name of new Set([...parts.tools.keys(), ...wanted.keys()])) {
          planned.push(yield* toolStep(name, parts.tools.get(name), wanted.get(name)))
        }
      }
      if (configured.cases !== undefined) planned.push(...caseSteps(parts.cases, configured.cases))
      planned.push(...widgetSteps(widgets, parts.widget, configured.widget))
      planned.push(...(yield* channels.steps(parts.channels, configured.channels)))
      return planned.filter((step) => step !== undefined)
    })

    return { load, none: noParts, steps, toFileForm, fingerprint: store.fingerprint } as const
  })
}) {}
