/** Sources of the agent. */
import { useText } from "../../text/Language.tsx"
import { SourceList } from "../sources/SourceList.tsx"
import { useSourceActions } from "../sources/SourceActions.tsx"
import { words } from "../sources/words.ts"
import { AgentPart, type PartProps } from "./AgentPart.tsx"

const AgentSources = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const { buttons, dialog, headButtons } = useSourceActions(agent.id, user)
  return (
    <AgentPart part="sources" agent={agent} user={user} lead={t.lead} guide="sources" actions={headButtons}>
      {dialog}
      <SourceList agentId={agent.id} user={user} add={buttons} />
    </AgentPart>
  )
}

export default AgentSources
