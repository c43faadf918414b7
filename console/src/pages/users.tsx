// Users with their tags, permissions and limits.

import { call } from "../api/client.ts";
import type { User } from "../api/types.ts";
import { useLoad } from "../load.ts";
import { useLocale } from "../locale.ts";
import { Badge } from "../parts/badge.tsx";
import { Facts, type Fact } from "../parts/facts.tsx";
import { Link } from "../parts/link.tsx";
import { Loaded } from "../parts/loaded.tsx";
import { Name } from "../parts/name.tsx";
import { Page, Section } from "../parts/page.tsx";
import { PagedList } from "../parts/paged-list.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Values } from "../parts/values.tsx";
import { addressOf } from "../route.ts";
import { RightsTester } from "./rights-tester.tsx";

export function UsersPage({ query }: { query: URLSearchParams }) {
  const name = query.get("name");
  return name === null ? <UserList /> : <OneUser name={name} />;
}

function UserList() {
  const { words, format } = useLocale();
  const w = words.users;
  const columns: readonly Column<User>[] = [
    {
      label: w.name,
      cell: (user) => (
        <Link to={addressOf("users", { name: user.name })}>
          <Name text={user.name} />
        </Link>
      ),
    },
    { label: w.tags, cell: (user) => <Tags tags={user.tags} /> },
    { label: w.vhosts, cell: (user) => <Name text={Object.keys(user.permissions).join(", ")} /> },
    { label: w.password, cell: (user) => (user.has_password ? words.yes : words.no) },
    { label: w.tokens, cell: (user) => format.count(user.tokens), isNumber: true },
  ];
  return (
    <Page title={w.title}>
      <PagedList<User>
        label={w.title}
        columns={columns}
        read={(page, signal) => call("get", "/v1/users", { query: page, signal })}
        searchHint={w.searchHint}
        empty={w.empty}
      />
    </Page>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return <span class="quiet">–</span>;
  return (
    <span class="inline-list">
      {tags.map((tag) => (
        <Badge key={tag}>
          <bdi>{tag}</bdi>
        </Badge>
      ))}
    </span>
  );
}

function OneUser({ name }: { name: string }) {
  const { words, format } = useLocale();
  const w = words.users;
  const user = useLoad(name, (signal) => call("get", "/v1/users/{user}", { at: { user: name }, signal }));
  return (
    <Page
      title={name}
      heading={
        <>
          <Link to={addressOf("users")} class="above">
            {w.back}
          </Link>
          <Name text={name} />
        </>
      }
    >
      <Loaded data={user}>
        {(value) => (
          <>
            <Section title={words.queue.facts}>
              <UserFacts user={value} />
            </Section>
            <Section title={w.permissions}>
              <Permissions user={value} />
            </Section>
            <Section title={words.rights.title}>
              <RightsTester user={value.name} vhosts={Object.keys(value.permissions)} />
            </Section>
            {Object.keys(value.limits).length > 0 && (
              <Section title={w.limits}>
                <Facts facts={Object.entries(value.limits).map(([key, limit]) => [key, format.count(limit)])} />
              </Section>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function UserFacts({ user }: { user: User }) {
  const { words, format } = useLocale();
  const w = words.users;
  const facts: Fact[] = [
    [w.tags, <Tags tags={user.tags} />],
    [w.password, user.has_password ? words.yes : words.no],
    [w.tokens, format.count(user.tokens)],
  ];
  if (typeof user.vhost === "string") facts.push([w.defaultVhost, <Name text={user.vhost} />]);
  if (typeof user.certificate === "string") facts.push([w.certificate, <Name text={user.certificate} />]);
  if (user.nkeys.length > 0) facts.push([w.nkeys, <Name text={user.nkeys.join(", ")} />]);
  return <Facts facts={facts} />;
}

type PermissionRow = readonly [vhost: string, permission: User["permissions"][string]];

function Permissions({ user }: { user: User }) {
  const { words } = useLocale();
  const w = words.users;
  const columns: readonly Column<PermissionRow>[] = [
    { label: w.vhost, cell: ([vhost]) => <Name text={vhost} /> },
    { label: w.configure, cell: ([, permission]) => <Name text={permission.configure} empty={words.none} /> },
    { label: w.write, cell: ([, permission]) => <Name text={permission.write} empty={words.none} /> },
    { label: w.read, cell: ([, permission]) => <Name text={permission.read} empty={words.none} /> },
    {
      label: w.topics,
      cell: ([, permission]) => {
        const topics = Object.entries(permission.topics ?? {});
        return <Values values={Object.fromEntries(topics.map(([exchange, topic]) => [exchange, `${w.write} ${topic.write} · ${w.read} ${topic.read}`]))} label={w.topics} />;
      },
    },
  ];
  return <Table label={w.permissions} columns={columns} rows={Object.entries(user.permissions)} empty={w.noPermissions} />;
}
