/** An error message, with the request's id for the operator. */
import { ApiError } from "../api/Client.ts"
import { issuesOf } from "../forms/useIssues.ts"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { useIssueText } from "../text/useIssueText.ts"
import { useReason } from "../text/useReason.ts"
import css from "./Problem.module.css"

interface ProblemProps {
  readonly problem: unknown
  /** Replaces the usual message of the code. */
  readonly sentence?: string | undefined
}

/** Questions of the test cases for which a version was not published. */
const failingOf = (problem: unknown): ReadonlyArray<string> => {
  const failing = problem instanceof ApiError ? problem.details["failing"] : undefined
  return Array.isArray(failing) ? failing.map(String) : []
}

export const Problem = ({ problem, sentence }: ProblemProps) => {
  const t = useText(everywhere)
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
      {issues.map(({ message, path }, place) => (
        <span key={place}>{`${path.join(" › ")}: ${issueText(message)}`}</span>
      ))}
      {failingOf(problem).map((question, place) => (
        <span key={place}>{`– ${question}`}</span>
      ))}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
    </div>
  )
}
