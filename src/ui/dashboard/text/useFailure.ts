/** Texts for operators that say why a turn failed and what to do. */
import type { ProviderProblem } from "../../../domain/chat/AgentRun.ts"
import { texts, useText } from "./Language.tsx"

/** The failure of a turn, as in its trace. `provider` is the model provider's problem; null for other causes. */
interface Failure {
  readonly code: string
  readonly provider: string | null
}

type FailureCode = ProviderProblem | "RUNTIME_TIMEOUT" | "PROCESS_STOPPED" | "TAKEN_OVER" | "TURN_FAILED"

const words = texts(
  {
    key_refused:
      "The model provider refused the key. Check the key of the provider in the server's settings.",
    quota_spent: "The budget at the model provider is spent.",
    rate_limited: "The model provider limits how often it is asked, and asked for a pause.",
    model_unknown:
      "The model provider does not know the model. Check the name of the model, and the provider's address.",
    request_refused: "The model provider refused the request.",
    unreachable: "The model provider could not be reached, or had a failure of its own.",
    timed_out: "The model provider did not answer in time.",
    answer_broken: "The model provider broke its answer off, or it could not be read.",
    RUNTIME_TIMEOUT: "The answer took longer than the server waits.",
    PROCESS_STOPPED: "The server stopped in the middle of the answer.",
    TAKEN_OVER: "Somebody took the conversation over in the meantime.",
    TURN_FAILED: "The answer could not be finished. The server's log says why."
  } satisfies Record<FailureCode, string>,
  {
    key_refused:
      "Der Modellanbieter hat den Schlüssel abgelehnt. Bitte den Schlüssel des Anbieters in den Einstellungen des Servers prüfen.",
    quota_spent: "Das Guthaben beim Modellanbieter ist aufgebraucht.",
    rate_limited: "Der Modellanbieter begrenzt die Zahl der Anfragen und bat um eine Pause.",
    model_unknown:
      "Der Modellanbieter kennt das Modell nicht. Bitte den Namen des Modells und die Adresse des Anbieters prüfen.",
    request_refused: "Der Modellanbieter hat die Anfrage abgelehnt.",
    unreachable: "Der Modellanbieter war nicht erreichbar oder hatte selbst eine Störung.",
    timed_out: "Der Modellanbieter hat nicht rechtzeitig geantwortet.",
    answer_broken: "Der Modellanbieter hat seine Antwort abgebrochen, oder sie war nicht lesbar.",
    RUNTIME_TIMEOUT: "Die Antwort hat länger gedauert, als der Server wartet.",
    PROCESS_STOPPED: "Der Server wurde mitten in der Antwort beendet.",
    TAKEN_OVER: "Inzwischen hat jemand das Gespräch übernommen.",
    TURN_FAILED: "Die Antwort konnte nicht beendet werden. Der Grund steht im Protokoll des Servers."
  }
)

export const useFailure = (): ((failure: Failure) => string) => {
  const textByCode = new Map<string, string>(Object.entries(useText(words)))
  return ({ code, provider }) => textByCode.get(provider ?? code) ?? textByCode.get(code) ?? code
}
