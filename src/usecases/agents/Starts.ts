/** The setup checklist of a tenant, derived from what exists. */
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Start } from "../../domain/agents/Start.ts"
import { noSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { StartStore } from "../../store/agents/Starts.ts"
import { SourceScopes } from "../knowledge/SourceScopes.ts"
import { suggestedQuestions } from "./SuggestedQuestions.ts"

const nothingStarted = { sources: 0, documents: 0, tried: false, widget: false }

export class Starts extends Effect.Service<Starts>()("usecases/agents/Starts", {
  effect: Effect.gen(function* () {
    const store = yield* StartStore
    const scopes = yield* SourceScopes

    /** The state for the named agent, else for the newest agent that is not the sample. */
    const get = Effect.fn("Starts.get")(function* (scope: TenantScope, agentId: AgentId | undefined) {
      const rows = yield* store.find(scope, agentId ?? null)
      const sample = rows.find(({ isSample }) => isSample)
      const agent = rows.find(({ id, isSample: sampled }) =>
        agentId === undefined ? !sampled : id === agentId
      )
      if (agent === undefined && agentId !== undefined) {
        return yield* noSuch("agent")
      }
      const { documents, sources, tried, widget } = agent ?? nothingStarted
      const start: Start = {
        agent: agent === undefined ? null : { id: agent.id, name: agent.name },
        sample: sample === undefined ? null : { id: sample.id, name: sample.name },
        sources,
        documents,
        tried,
        widget,
        finished: documents > 0 && tried && widget,
        dismissed: yield* store.isDismissed(scope)
      }
      return start
    })

    /** At most three questions that the agent's content answers. */
    const questions = Effect.fn("Starts.questions")(function* (scope: TenantScope, agentId: AgentId) {
      return suggestedQuestions(yield* store.headings(yield* scopes.ofAgent(scope, agentId)))
    })

    return { get, questions, dismiss: store.dismiss } as const
  })
}) {}
