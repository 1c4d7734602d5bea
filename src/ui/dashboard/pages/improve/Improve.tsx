/**
 * Improving an agent's answers: what went wrong, corrections, findings, the impact of changes, and the use of
 * sources.
 */
import { useSearchParams } from "wouter"
import { atLeast } from "../../api/Session.ts"
import { Tabs } from "../../components/Tabs.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "../agents/AgentPart.tsx"
import { Corrections } from "./Corrections.tsx"
import { Findings } from "./Findings.tsx"
import { Impact } from "./Impact.tsx"
import { SourceValues } from "./SourceValues.tsx"
import { WrongGroups } from "./WrongGroups.tsx"

const words = texts(
  {
    lead: "What went wrong, the right answers, and what a change would do.",
    parts: "What can be improved",
    wrong: "What went wrong",
    corrections: "Corrections",
    findings: "Findings",
    impact: "Impact of changes",
    values: "Value of sources"
  },
  {
    lead: "Was schiefging, die richtigen Antworten, und was eine Änderung bewirken würde.",
    parts: "Was sich verbessern lässt",
    wrong: "Was schiefging",
    corrections: "Korrekturen",
    findings: "Funde",
    impact: "Folgen von Änderungen",
    values: "Wert der Quellen"
  }
)

const Improve = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const [parameters, setParameters] = useSearchParams()
  const mayChange = atLeast(user.role, "admin")
  const openTab = (next: Readonly<Record<string, string>>) => setParameters(new URLSearchParams(next))
  const isMember = atLeast(user.role, "agent")
  const agentId = agent.id
  const tabs = [
    ["wrong", t.wrong],
    ...(isMember ? ([["corrections", t.corrections]] as const) : []),
    ["findings", t.findings],
    ...(isMember ? ([["impact", t.impact]] as const) : []),
    ["values", t.values]
  ] as const
  const requestedTab = parameters.get("part") ?? "wrong"
  const tab = tabs.find(([id]) => id === requestedTab)?.[0] ?? "wrong"
  const hrefOf = (id: string) => `/agents/${agentId}/improve?part=${id}`
  return (
    <AgentPart part="improve" agent={agent} user={user} lead={t.lead} guide="insights">
      <Tabs
        label={t.parts}
        tabs={tabs.map(([id, title]) => [hrefOf(id), title] as const)}
        current={hrefOf(tab)}
      />
      {tab === "wrong" ? <WrongGroups agentId={agentId} mayChange={mayChange} showsTitle={false} /> : null}
      {tab === "corrections" ? (
        <Corrections
          agentId={agentId}
          mayChange={mayChange}
          shownId={parameters.get("correction")}
          onShow={(id) => openTab({ part: "corrections", ...(id === null ? {} : { correction: id }) })}
        />
      ) : null}
      {tab === "findings" ? <Findings agentId={agentId} mayChange={mayChange} /> : null}
      {tab === "impact" ? (
        <Impact
          agentId={agentId}
          mayChange={mayChange}
          replayId={parameters.get("replay")}
          onReplay={(id) => openTab({ part: "impact", ...(id === null ? {} : { replay: id }) })}
        />
      ) : null}
      {tab === "values" ? <SourceValues agentId={agentId} /> : null}
    </AgentPart>
  )
}

export default Improve
