-- The tables of index.sqlite3 that are read, as `archivebox init` of release 0.7.4 made them: columns and
-- keys.
create table core_snapshot (id char(32) primary key, timestamp varchar(32) not null unique, title
  varchar(512), added datetime not null, updated datetime, url varchar(200) not null unique);
create table core_tag (name varchar(100) not null unique, slug varchar(100) not null unique, id integer
  primary key autoincrement);
create table core_snapshot_tags (id integer primary key autoincrement, snapshot_id char(32) not null, tag_id
  integer not null);
create table core_archiveresult (id integer primary key autoincrement, cmd text not null check
  (json_valid(cmd)), pwd varchar(256) not null, cmd_version varchar(128), status varchar(16) not null,
  output varchar(1024) not null, start_ts datetime not null, end_ts datetime not null, snapshot_id char(32)
  not null, uuid char(32) not null, extractor varchar(32) not null);
