-- The tables of index.sqlite3 that are read, as `archivebox init` of release 0.8.5rc51 made them: columns
-- and keys.
create table core_snapshot (url varchar(200) not null unique, timestamp varchar(32) not null unique, title
  varchar(512), abid varchar(30) unique, created_by_id integer not null, id char(32) primary key,
  bookmarked_at datetime not null, created_at datetime not null, modified_at datetime not null,
  downloaded_at datetime);
create table core_tag (name varchar(100) not null unique, slug varchar(100) not null unique, abid
  varchar(30) unique, created_at datetime not null, created_by_id integer not null, modified_at datetime not
  null, id char(32) primary key);
create table core_snapshot_tags (id integer primary key autoincrement, snapshot_id char(32) not null, tag_id
  char(32) not null);
create table core_archiveresult (cmd text not null check (json_valid(cmd)), pwd varchar(256) not null,
  cmd_version varchar(128), status varchar(16) not null, output varchar(1024) not null, start_ts datetime
  not null, end_ts datetime not null, extractor varchar(32) not null, abid varchar(30) unique, created_at
  datetime not null, created_by_id integer not null, modified_at datetime not null, snapshot_id char(32) not
  null, id char(32) primary key);
