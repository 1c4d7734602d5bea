/** The user's own passkeys. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import {
  addPasskey,
  isAlreadyRegistered,
  isCancelled,
  passkeys,
  removePasskey,
  supportsPasskeys
} from "../../api/Passkeys.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Section, Loaded } from "../../components/Page.tsx"
import { RowActions } from "../../components/RowActions.tsx"
import { Table } from "../../components/Table.tsx"
import { Form } from "../../forms/Form.tsx"
import { useFormat } from "../../text/Format.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Passkeys",
    lead: "Sign in with your fingerprint, face or device PIN instead of a password.",
    none: "You have no passkey yet.",
    unavailable: "Passkeys work where this dashboard has a name of its own, over https.",
    unknown: "This browser knows no passkeys.",
    nameHelp: "Where it is kept, for example “Work laptop”.",
    add: "Add a passkey",
    off: "No passkey was added. It was cancelled, or took too long.",
    twice: "This device has a passkey of yours already.",
    synced: "Backed up",
    made: "Added",
    used: "Last use",
    never: "Never",
    remove: "Remove",
    removal: "Remove the passkey",
    question: (name: string) => `“${name}” lets nobody in any more. Sessions that are open stay.`
  },
  {
    title: "Passkeys",
    lead: "Mit Fingerabdruck, Gesicht oder Geräte-PIN anmelden statt mit einem Passwort.",
    none: "Sie haben noch keinen Passkey.",
    unavailable: "Passkeys gehen, wo diese Übersicht einen eigenen Namen hat, über https.",
    unknown: "Dieser Browser kennt keine Passkeys.",
    nameHelp: "Wo er aufbewahrt wird, zum Beispiel „Arbeitsrechner“.",
    add: "Passkey hinzufügen",
    off: "Es kam kein Passkey dazu. Es wurde abgebrochen oder hat zu lange gedauert.",
    twice: "Dieses Gerät hat schon einen Passkey von Ihnen.",
    synced: "Gesichert",
    made: "Hinzugefügt",
    used: "Zuletzt benutzt",
    never: "Nie",
    remove: "Entfernen",
    removal: "Passkey entfernen",
    question: (name: string) => `„${name}“ lässt niemanden mehr ein. Offene Sitzungen bleiben.`
  }
)

const AddPasskey = () => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const [name, setName] = useState("")
  const add = useMutation({
    mutationFn: () => addPasskey(name),
    onSuccess: () => {
      setName("")
      return queries.invalidateQueries({ queryKey: passkeys.queryKey })
    }
  })
  const sentence = isCancelled(add.error) ? t.off : isAlreadyRegistered(add.error) ? t.twice : null
  return (
    <Form onSubmit={() => add.mutate()} problem={sentence === null ? add.error : null}>
      {sentence === null ? null : <p role="alert">{sentence}</p>}
      <TextField
        label={common.name}
        help={t.nameHelp}
        required
        maxLength={100}
        value={name}
        onChange={setName}
      />
      <Actions>
        <Button type="submit" busy={add.isPending}>
          {t.add}
        </Button>
      </Actions>
    </Form>
  )
}

export const Passkeys = () => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago } = useFormat()
  const queries = useQueryClient()
  const query = useQuery(passkeys)
  return (
    <Section title={t.title} lead={t.lead} guide="authentication#passkeys">
      <Loaded query={query}>
        {(stored) => (
          <>
            {stored.passkeys.length === 0 ? (
              <p>{t.none}</p>
            ) : (
              <Table
                label={t.title}
                rows={stored.passkeys}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: common.name,
                    cell: ({ backedUp, name }) => (
                      <>
                        <strong>{name}</strong> {backedUp ? <Badge tone="neutral">{t.synced}</Badge> : null}
                      </>
                    )
                  },
                  { title: t.made, cell: ({ createdAt }) => ago(createdAt) },
                  {
                    title: t.used,
                    noWrap: true,
                    cell: ({ usedAt }) => (usedAt === null ? t.never : ago(usedAt))
                  }
                ]}
                actions={({ id, name }) => (
                  <RowActions
                    of={name}
                    actions={[
                      {
                        label: t.remove,
                        does: {
                          title: t.removal,
                          question: t.question(name),
                          action: t.remove,
                          onConfirm: () =>
                            removePasskey(id).then(() =>
                              queries.invalidateQueries({ queryKey: passkeys.queryKey })
                            )
                        }
                      }
                    ]}
                  />
                )}
              />
            )}
            {!stored.available ? (
              <p>{t.unavailable}</p>
            ) : supportsPasskeys() ? (
              <AddPasskey />
            ) : (
              <p>{t.unknown}</p>
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}
