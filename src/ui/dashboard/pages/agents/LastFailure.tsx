/** A notice on the agent's page: its last answer failed, with the reason. */
import { useQuery } from "@tanstack/react-query"
import { lastRun } from "../../api/Agents.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import css from "./LastFailure.module.css"

const words = texts(
  { failed: "The last message to this agent got no answer." },
  { failed: "Die letzte Nachricht an diesen Agenten blieb ohne Antwort." }
)

export const LastFailure = ({ agentId }: { readonly agentId: string }) => {
  const t = useText(words)
  const failureText = useFailure()
  const { ago } = useFormat()
  const { data } = useQuery(lastRun(agentId))
  const failure = data?.failure ?? null
  return (
    <div role="status" className={failure === null ? "visually-hidden" : css["failure"]}>
      {data === null || data === undefined || failure === null ? null : (
        <>
          <strong>{t.failed}</strong> <span>{failureText(failure)}</span> <span>{ago(data.at)}</span>
        </>
      )}
    </div>
  )
}
