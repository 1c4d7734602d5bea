/**
 * Improving an agent's answers: what went wrong, corrections, findings, the impact of changes, and the use of
 * sources.
 */
import { useSearchParams } from "wouter"
import { atLeast, type User } from "../../api/Session.ts"
import { Tabs } from "../../components/Tabs.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { Corrections } from "./Corrections.tsx"
import { Findings } from "./Findings.tsx"
import { Impact } from "./Impact.tsx"
import { SourceValues } from "./SourceValues.tsx"
import { WrongGroups } from "./WrongGroups.tsx"

const words = texts(
  {
    parts: "What can be improved",
    wrong: "What went wrong",
    corrections: "Corrections",
    findings: "Findings",
    impact: "Impact of changes",
    values: "Value of sources"
  },
  {
    parts: "Was sich verbessern lässt",
    wrong: "Was schiefging",
    corrections: "Korrekturen",
    findings: "Funde",
    impact: "Folgen von Änderungen",
    values: "Wert der Quellen"
  }
)

interface Props {
  readonly agentId: string
  readonly user: User
}

const Improve = ({ agentId, user }: Props) => {
  const t = useText(words)
  const [parameters, setParameters] = useSearchParams()
  const mayChange = atLeast(user.role, "admin")
  const part = parameters.get("part") ?? "wrong"
  const open = (next: Readonly<Record<string, string>>) => setParameters(new URLSearchParams(next))
  const isMember = atLeast(user.role, "agent")
  const tabs = [
    ["wrong", t.wrong, <WrongGroups agentId={agentId} mayChange={mayChange} titled={false} />],
    ...(isMember
      ? ([
          [
            "corrections",
            t.corrections,
            <Corrections
              agentId={agentId}
              mayChange={mayChange}
              shown={parameters.get("correction")}
              onShow={(id) => open({ part: "corrections", ...(id === null ? {} : { correction: id }) })}
            />
          ]
        ] as const)
      : []),
    ["findings", t.findings, <Findings agentId={agentId} mayChange={mayChange} />],
    ...(isMember
      ? ([
          [
            "impact",
            t.impact,
            <Impact
              agentId={agentId}
              mayChange={mayChange}
              replayId={parameters.get("replay")}
              onReplay={(id) => open({ part: "impact", ...(id === null ? {} : { replay: id }) })}
            />
          ]
        ] as const)
      : []),
    ["values", t.values, <SourceValues agentId={agentId} />]
  ] as const
  return (
    <Tabs
      label={t.parts}
      tabs={tabs}
      current={tabs.some(([id]) => id === part) ? part : "wrong"}
      onChange={(next) => open({ part: next })}
    />
  )
}

export default Improve
