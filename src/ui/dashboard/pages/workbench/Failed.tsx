/** Why a message got no answer, with a button to ask again. */
import { ApiError } from "../../api/Client.ts"
import { Button } from "../../components/Button.tsx"
import { failureIn, type RunEvent } from "../../components/replies/Trace.tsx"
import { issuesOf } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import { useIssueText } from "../../text/useIssueText.ts"
import { useReason } from "../../text/useReason.ts"
import css from "./Chat.module.css"

const words = texts(
  { failed: "No answer", stopped: "You stopped the answer before it began.", retry: "Ask again" },
  {
    failed: "Keine Antwort",
    stopped: "Sie haben die Antwort angehalten, bevor sie begann.",
    retry: "Noch einmal fragen"
  }
)

interface Props {
  readonly problem: Error
  /** The last of the turn's events; undefined where there was no turn. */
  readonly last: RunEvent | undefined
  readonly isStopped: boolean
  /** Null if the question cannot be asked again. */
  readonly onAgain: (() => void) | null
}

/** A failure from the stream, by its code, or of the request. */
export const Failed = ({ isStopped, last, onAgain, problem }: Props) => {
  const t = useText(words)
  const why = useFailure()
  const reason = useReason()(problem)
  const issueText = useIssueText()
  const { message } = problem
  const isTold = message === "TURN_FAILED" || message === "RUNTIME_TIMEOUT"
  const failure = last === undefined ? null : failureIn(last)
  const told = isTold ? why(failure ?? { code: message, provider: null }) : reason.sentence
  const again =
    onAgain === null ? null : (
      <div>
        <Button onClick={onAgain}>{t.retry}</Button>
      </div>
    )
  if (isStopped && isTold) {
    return (
      <div role="status" className={css["stopped"]}>
        <span>{t.stopped}</span>
        {again}
      </div>
    )
  }
  return (
    <div role="alert" className={css["error"]}>
      <strong>{t.failed}</strong>
      <span>{told}</span>
      {reason.detail === null ? null : <span lang="en">{reason.detail}</span>}
      {issuesOf(problem).map((issue, place) => (
        <span key={place}>{`${issue.path.join(" › ")}: ${issueText(issue.message)}`}</span>
      ))}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
      {again}
    </div>
  )
}
