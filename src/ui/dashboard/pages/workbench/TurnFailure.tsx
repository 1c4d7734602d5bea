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
import { isTurnFailure } from "./TestChat.ts"

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
  /** The last event of the turn; undefined if no turn began. */
  readonly lastEvent: RunEvent | undefined
  readonly isStopped: boolean
  /** Null if the question cannot be asked again. */
  readonly onAskAgain: (() => void) | null
}

/** The failure of a turn, by its code, or of the request for it. */
export const TurnFailure = ({ isStopped, lastEvent, onAskAgain, problem }: Props) => {
  const t = useText(words)
  const failureText = useFailure()
  const reason = useReason()(problem)
  const issueText = useIssueText()
  const failure = lastEvent === undefined ? null : failureIn(lastEvent)
  const sentence = isTurnFailure(problem)
    ? failureText(failure ?? { code: problem.message, provider: null })
    : reason.sentence
  const askAgain =
    onAskAgain === null ? null : (
      <div>
        <Button onClick={onAskAgain}>{t.retry}</Button>
      </div>
    )
  if (isStopped && isTurnFailure(problem)) {
    return (
      <div role="status" className={css["stopped"]}>
        <span>{t.stopped}</span>
        {askAgain}
      </div>
    )
  }
  return (
    <div role="alert" className={css["error"]}>
      <strong>{t.failed}</strong>
      <span>{sentence}</span>
      {reason.detail === null ? null : <span lang="en">{reason.detail}</span>}
      {issuesOf(problem).map((issue, index) => (
        <span key={index}>{`${issue.path.join(" › ")}: ${issueText(issue.message)}`}</span>
      ))}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
      {askAgain}
    </div>
  )
}
