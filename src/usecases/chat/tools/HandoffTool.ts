/**
 * The tool by which the model requests a human: a typed call, never text in a reply. Offered where a team member can
 * answer, in the widget and on messaging channels. An application that calls the API handles this itself.
 */
import * as Effect from "effect/Effect"
import type { ToolDeclaration } from "../../../capabilities/ModelRuntime.ts"
import { toolFailure } from "../../../domain/agents/ToolFailure.ts"
import type { TurnTools } from "./Tools.ts"
import type { Turn } from "../Turn.ts"

const name = "hand_off_to_human"

/** Maximum characters of a reason that are kept. */
const maxReasonCharacters = 500

const declaration: ToolDeclaration = {
  name,
  description:
    "Hand this conversation over to a human of the team. Call it when the customer asks for a person, or when you cannot " +
    "help. Then tell the customer in one sentence that a person will take over. You will not be asked again.",
  parameters: {
    type: "object",
    properties: { reason: { type: "string", description: "Why a human is needed, for the team to read." } },
    required: ["reason"],
    additionalProperties: false
  }
}

/** True when a team member can answer instead of the agent. */
export const isOffered = ({ opening, request }: Turn): boolean => request.persist && opening.channel !== "api"

/** The turn's tools, with this one where it is offered. A call of any other tool may have had outside effects. */
export const addTo = (turn: Turn, tools: TurnTools): TurnTools => {
  const { call, declarations, scrubber } = tools
  const callOther: TurnTools["call"] = (tool, input, progress) =>
    Effect.suspend(() => {
      turn.acted = true
      return call(tool, input, progress)
    })
  if (!isOffered(turn)) return { ...tools, call: callOther }
  return {
    ...tools,
    declarations: [...declarations.filter((tool) => tool.name !== name), declaration],
    sent: (tool, input) => (tool === name ? input : tools.sent(tool, input)),
    call: (tool, input, progress) => {
      if (tool !== name) return callOther(tool, input, progress)
      const reason = input?.["reason"]
      if (typeof reason !== "string" || reason.trim() === "") {
        return Effect.fail(toolFailure("INVALID_ARGUMENTS", "reason: expected a text"))
      }
      return Effect.sync(() => {
        // Unmasked, because the team reads the conversation too.
        const reasonForHumans = turn.masking === null ? reason : turn.masking.restore(reason)
        turn.handoff = scrubber.text(reasonForHumans.trim()).slice(0, maxReasonCharacters).toWellFormed()
        return { state: "HUMAN_REQUESTED" }
      })
    }
  }
}
