/** An error message, with the request's id for the operator. */
import { ApiError } from "../api/Client.ts"
import { issuesOf } from "../forms/useIssues.ts"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { useIssueText } from "../text/useIssueText.ts"
import { useReason } from "../text/useReason.ts"
import css from "./Problem.module.css"

interface ProblemProps {
  readonly problem: unknown
  /** Replaces the message of the error's code. */
  readonly sentence?: string | undefined
}

/** The questions of the failing test cases that prevented a version from being published. */
const failingOf = (problem: unknown): ReadonlyArray<string> => {
  const failing = problem instanceof ApiError ? problem.details["failing"] : undefined
  return Array.isArray(failing) ? failing.map(String) : []
}

export const Problem = ({ problem, sentence }: ProblemProps) => {
  const t = useText(commonTexts)
  const reason = useReason()(problem)
  const issueText = useIssueText()
  const issues = issuesOf(problem)
  return (
    <div role="alert" className={css["problem"]}>
      <strong>{t.failed}</strong>
      <span>{sentence ?? reason.sentence}</span>
      {reason.detail === null || sentence !== undefined || issues.length > 0 ? null : (
        <span lang="en">{reason.detail}</span>
      )}
      {issues.map(({ message, path }, index) => (
        <span key={index}>{`${path.join(" › ")}: ${issueText(message)}`}</span>
      ))}
      {failingOf(problem).map((question, index) => (
        <span key={index}>{`– ${question}`}</span>
      ))}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
    </div>
  )
}
