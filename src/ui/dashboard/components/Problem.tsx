/** What went wrong, with the request's id for whoever looks into it. */
import { ApiError } from "../api/Client.ts"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { useReason } from "../text/useReason.ts"
import css from "./Problem.module.css"

interface ProblemProps {
  readonly problem: unknown
  /** Instead of what the code means everywhere else. */
  readonly sentence?: string | undefined
}

export const Problem = ({ problem, sentence }: ProblemProps) => {
  const t = useText(everywhere)
  const reason = useReason()(problem)
  return (
    <div role="alert" className={css["problem"]}>
      <strong>{t.failed}</strong>
      <span>{sentence ?? reason.sentence}</span>
      {reason.detail === null || sentence !== undefined ? null : <span lang="en">{reason.detail}</span>}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
    </div>
  )
}
