/** How the chat gets onto a page. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import type { Agent } from "../../api/Agents.ts"
import { createKey, keys } from "../../api/Keys.ts"
import { Button } from "../../components/Button.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Card } from "../../components/Page.tsx"
import { DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Origins } from "./Origins.tsx"
import { meantBy, originsOf } from "./origins.ts"

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

const nothing = { origins: "" }

const Embed = ({ agent }: { readonly agent: Agent }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({ name: `embed.${agent.id}`, title: t.title, stored: nothing })
  const { origins } = draft.value
  const meant = meantBy(origins)
  const make = useMutation({
    mutationFn: () =>
      createKey(agent.id, { name: t.keyName, permissions: ["chat"], allowedOrigins: originsOf(meant) }),
    onSuccess: () => {
      draft.saved()
      return queries.invalidateQueries({ queryKey: keys(agent.id).queryKey })
    }
  })
  const { errorOf, general } = useIssues(make.error, ["allowedOrigins"])
  const submit = () => {
    // What is no website is said at the field.
    if (meant.every(({ origin }) => origin !== null)) make.mutate()
  }
  return (
    <Card title={t.title}>
      <p>{t.lead}</p>
      {make.data === undefined ? (
        <Form onSubmit={submit} problem={general}>
          <Origins
            label={t.origins}
            help={t.originsHelp}
            isRequired
            value={origins}
            onChange={(typed) => draft.change({ origins: typed })}
            error={errorOf("allowedOrigins")}
          />
          <Actions>
            <DraftState draft={draft} />
            <Button kind="primary" type="submit" busy={make.isPending}>
              {t.make}
            </Button>
          </Actions>
        </Form>
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
                draft.change(nothing)
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
