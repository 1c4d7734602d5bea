/** The page of one part of an agent: its title, the agent's current failures, and the part itself. */
import type { ReactNode } from "react"
import type { Agent } from "../../api/Agents.ts"
import type { User } from "../../api/Session.ts"
import { CopyableId } from "../../components/CopyableId.tsx"
import { Page } from "../../components/Page.tsx"
import { type Part, usePartNames } from "../../shell/agentMenu.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./AgentPart.module.css"
import { LastFailure } from "./LastFailure.tsx"
import { ProblemNotices } from "./problems/Problems.tsx"

const words = texts({ id: "Agent ID" }, { id: "ID des Agenten" })

export interface PartProps {
  readonly agent: Agent
  readonly user: User
}

interface Props extends PartProps {
  readonly part: Part
  readonly lead?: ReactNode
  /** Page and heading of the documentation about the part. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** For forms and texts: limits the width. */
  readonly narrow?: boolean
  /** Shows the agent's id, on the parts that programs need it for. */
  readonly showsId?: boolean
  readonly children: ReactNode
}

export const AgentPart = ({ agent, children, part, showsId = false, user, ...page }: Props) => {
  const t = useText(words)
  const title = usePartNames()[part]
  return (
    <Page {...page} title={title} windowTitle={`${title} · ${agent.name}`} above={agent.name}>
      {showsId ? (
        <p className={css["id"]}>
          {t.id}: <CopyableId id={agent.id} label={t.id} />
        </p>
      ) : null}
      <LastFailure agentId={agent.id} />
      <ProblemNotices agentId={agent.id} user={user} />
      {children}
    </Page>
  )
}
