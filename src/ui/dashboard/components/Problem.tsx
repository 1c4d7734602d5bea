/** What went wrong, in the service's words, with the request's id for whoever looks into it. */
import { ApiError } from "../api/Client.ts"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import css from "./Problem.module.css"

export const Problem = ({ problem }: { readonly problem: unknown }) => {
  const t = useText(everywhere)
  const known = problem instanceof ApiError
  return (
    <div role="alert" className={css["problem"]}>
      <strong>{t.failed}</strong>
      <span>{known ? problem.message : t.unreachable}</span>
      {known ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
    </div>
  )
}
