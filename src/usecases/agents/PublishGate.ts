/** Blocks publishing of a version that fails the agent's thresholds for test cases. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { PublishThreshold } from "../../domain/agents/Experiment.ts"
import { maxTestCases } from "../../domain/agents/TestCase.ts"
import { Conflict, orNoSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import type { AgentSettings } from "../../store/agents/AgentSettings.ts"
import { ExperimentStore } from "../../store/agents/Experiments.ts"
import { PublishThresholdStore } from "../../store/agents/PublishThresholds.ts"
import { TestCaseStore } from "../../store/agents/TestCases.ts"
import { brokenCases, casesHash, settingsHash, testCaseFields } from "./ExperimentReports.ts"
import { noSuchVersion } from "../../domain/agents/AgentVersion.ts"

/** Maximum number of cases that a refusal names. */
const maxListedCases = 20

const refused = (reason: string, details: Readonly<Record<string, unknown>> = {}) =>
  new Conflict({
    message: `${reason} To publish it nevertheless, send force=true.`,
    details: { gate: true, ...details }
  })

const notTested = () =>
  refused(
    "These settings have not been tested with the agent's current test cases. Run an experiment with them first."
  )

const noBaseline = (version: number) =>
  refused(
    `The published version has not been tested with the agent's current test cases. Run an experiment with baselineVersion ${version} first.`
  )

const percent = (share: number) => `${Math.round(share * 1_000) / 10} %`

export class PublishGate extends Effect.Service<PublishGate>()("usecases/agents/PublishGate", {
  dependencies: [ExperimentStore.Default, PublishThresholdStore.Default, TestCaseStore.Default],
  effect: Effect.gen(function* () {
    const agents = yield* AgentStore
    const cases = yield* TestCaseStore
    const experiments = yield* ExperimentStore
    const thresholds = yield* PublishThresholdStore

    const find = Effect.fn("PublishGate.find")(function* (scope: TenantScope, agentId: AgentId) {
      return yield* thresholds.find(yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent")))
    })

    const set = ({ tenantId }: TenantScope, agentId: AgentId, threshold: PublishThreshold) =>
      thresholds.set({ tenantId, agentId }, threshold).pipe(orNoSuch("agent"))

    const latestOutcomes = (scope: AgentScope, settings: string, cases: string, count: number) =>
      Effect.gen(function* () {
        const found = yield* experiments.latest(scope, { settingsHash: settings, casesHash: cases })
        if (Option.isNone(found)) return Option.none()
        const outcomes = yield* experiments.listOutcomes(scope, found.value.id)
        // Results are deleted with their cases, so some may be missing.
        return outcomes.length < count ? Option.none() : Option.some(outcomes)
      })

    const checkSettings = Effect.fn("PublishGate.checkSettings")(function* (
      scope: AgentScope,
      { minPass, noRegression }: PublishThreshold,
      settings: AgentSettings,
      publishedBefore: number | null
    ) {
      const { rows } = yield* cases.page(scope, { limit: maxTestCases })
      const published = yield* agents.find(scope, scope.agentId)
      if (rows.length === 0 || Option.isNone(published)) return
      const publishedVersion = publishedBefore ?? published.value.publishedVersion
      const before = yield* agents.settingsOf(scope, scope.agentId, publishedVersion)
      const newHash = settingsHash(settings)
      // Equal settings: no reply can change.
      if (Option.isSome(before) && settingsHash(before.value) === newHash) return
      const currentCasesHash = casesHash(rows.map(testCaseFields))
      const found = yield* latestOutcomes(scope, newHash, currentCasesHash, rows.length)
      if (Option.isNone(found)) return yield* notTested()
      const failing = found.value.flatMap(({ question, result }) => (result.passed ? [] : [question]))
      const passed = found.value.length - failing.length
      // Divided, not multiplied: 0.55 * 100 is more than 55.
      if (minPass !== null && passed / rows.length < minPass) {
        return yield* refused(
          `${passed} of ${rows.length} test cases passed; the minimum is ${percent(minPass)}.`,
          { failing: failing.slice(0, maxListedCases) }
        )
      }
      if (!noRegression || Option.isNone(before)) return
      const baseline = yield* latestOutcomes(scope, settingsHash(before.value), currentCasesHash, rows.length)
      if (Option.isNone(baseline)) return yield* noBaseline(publishedVersion)
      const broken = brokenCases(baseline.value, found.value)
      if (broken.length > 0)
        return yield* refused("Significantly fewer test cases pass than with the published version.", {
          failing: broken.slice(0, maxListedCases)
        })
    })

    /**
     * CONFLICT when a stored version misses the agent's thresholds: `details.failing` has the questions of the failing
     * cases. An agent without a threshold or without cases has no gate. `publishedBefore` is the version that it
     * replaces, when that is no longer the published one.
     */
    const checkVersion = Effect.fn("PublishGate.checkVersion")(function* (
      { tenantId }: TenantScope,
      agentId: AgentId,
      version: number,
      publishedBefore: number | null = null
    ) {
      const scope = { tenantId, agentId }
      const threshold = yield* thresholds.find(scope)
      if (threshold.minPass === null && !threshold.noRegression) return
      const settings = yield* agents.settingsOf(scope, agentId, version)
      if (Option.isNone(settings)) return yield* noSuchVersion()
      yield* checkSettings(scope, threshold, settings.value, publishedBefore)
    })

    return { find, set, checkVersion } as const
  })
}) {}
