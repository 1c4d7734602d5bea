/** How the chat gets onto a page. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import type { Agent } from "../../api/Agents.ts"
import { createKey, keys } from "../../api/Keys.ts"
import { Button } from "../../components/Button.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { LongText } from "../../components/Field.tsx"
import { Card } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { originsOf } from "./origins.ts"

const words = texts(
  {
    title: "Put the chat on a page",
    lead: "The widget needs a key of its own: it may only chat, and only from the pages named here. Whoever reads the page can read the key, and can do no more with it.",
    origins: "Pages that may show it",
    originsHelp: "One website a line, such as https://www.example.com. With and without www are two.",
    make: "Make key and script",
    script: "Script",
    more: "One for another website",
    scriptHelp:
      "Paste it before </body> on each page that shall have the chat. The key is not shown again; under Keys it can be switched off.",
    keyName: "Widget"
  },
  {
    title: "Den Chat auf eine Seite setzen",
    lead: "Das Widget braucht einen eigenen Schlüssel: er darf nur chatten, und nur von den hier genannten Seiten. Wer die Seite lesen kann, kann den Schlüssel lesen, und mehr damit nicht tun.",
    origins: "Seiten, die ihn zeigen dürfen",
    originsHelp: "Je Zeile eine Website, etwa https://www.example.com. Mit und ohne www sind zweierlei.",
    make: "Schlüssel und Skript erzeugen",
    script: "Skript",
    more: "Noch eines für eine andere Website",
    scriptHelp:
      "Vor </body> in jede Seite einfügen, die den Chat haben soll. Der Schlüssel wird nicht wieder gezeigt; unter „Schlüssel“ lässt er sich ausschalten.",
    keyName: "Widget"
  }
)

const Embed = ({ agent }: { readonly agent: Agent }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [origins, setOrigins] = useState("")
  const allowedOrigins = originsOf(origins)
  const make = useMutation({
    mutationFn: () => createKey(agent.id, { name: t.keyName, permissions: ["chat"], allowedOrigins }),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys(agent.id).queryKey })
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    make.mutate()
  }
  return (
    <Card title={t.title}>
      <p>{t.lead}</p>
      {make.error === null ? null : <Problem problem={make.error} />}
      {make.data === undefined ? (
        <form onSubmit={submit} style={{ display: "contents" }}>
          <LongText
            label={t.origins}
            help={t.originsHelp}
            rows={2}
            mono
            isRequired
            value={origins}
            onChange={setOrigins}
          />
          <Actions>
            <Button kind="primary" type="submit" busy={make.isPending}>
              {t.make}
            </Button>
          </Actions>
        </form>
      ) : (
        <>
          <p>{t.scriptHelp}</p>
          <Copyable
            label={t.script}
            value={`<script src="${location.origin}/widget.js" data-key="${make.data.secret}"></script>`}
          />
          <Actions>
            <Button
              onPress={() => {
                make.reset()
                setOrigins("")
              }}
            >
              {t.more}
            </Button>
          </Actions>
        </>
      )}
    </Card>
  )
}

export default Embed
